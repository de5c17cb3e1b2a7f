import type { Config } from '../config.ts'
import { ApimClient } from '../sources/apim-client.ts'
import { fixedToken, SignInTokens } from '../sources/apim-tokens.ts'
import { BoundedHttp } from '../sources/bounded-http.ts'
import { type Finding, failed, inTime, ok, skipped } from './finding.ts'

const CHECK = 'remote catalogue'
const TIMEOUT_MS = 10_000

/** Reads its gateways with the token; a sign-in that makes one takes it back. */
export async function checkRemoteCatalogue(
  { remote, instance }: Config,
  now: () => number,
  signal: AbortSignal,
): Promise<Finding> {
  if (remote === null) return skipped(CHECK, 'KEYMESH_APIM_URL is not set: the account has its catalogue of its own.')
  const http = new BoundedHttp({ timeoutMs: TIMEOUT_MS, maxConnections: 1 })
  const { access, url } = remote
  const tokens =
    access.kind === 'token'
      ? fixedToken(access.token)
      : new SignInTokens({ http, access, now, tokenName: `keymesh doctor ${instance}` })
  try {
    const client = new ApimClient({ http, tokens, url, maxRepeats: 0 })
    await inTime(
      client.list('gateways', () => null, signal),
      TIMEOUT_MS,
    )
    return ok(CHECK, `${url} answers, and takes the token.`)
  } catch (error) {
    return failed(CHECK, error, 'Look at KEYMESH_APIM_URL, the token or the sign-in, and the network.')
  } finally {
    await inTime(tokens.close(), TIMEOUT_MS).catch(() => undefined)
    await http.close()
  }
}
