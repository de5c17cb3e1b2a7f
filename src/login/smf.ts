import { Buffer } from 'node:buffer'
import { isIP, isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import type { Protocol } from '../domain/catalogue.ts'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget, ProbeLimits } from '../reconcile/login-port.ts'
import { atDeadline } from './deadline.ts'
import type { SmfClient } from './smf-client.ts'
import { createSmfThread } from './smf-thread.ts'
import { tlsPreflight } from './tls-preflight.ts'
import { TrustFiles } from './trust-files.ts'

export interface SmfLoginOptions {
  /** Where solclientjs runs; a thread of its own when absent. */
  readonly client?: SmfClient
}

export interface SmfLogin extends LoginPort {
  /** Stops the thread and removes what was written for it; a probe after it starts anew. */
  close(): void
}

/**
 * SMF, protocols `smf`, `smfs` and `smfc`, with Solace's solclientjs: an optional dependency under a licence of its
 * own, which is loaded when the first login needs it.
 */
export function createSmfLogin({ client = createSmfThread() }: SmfLoginOptions = {}): SmfLogin {
  const trustFiles = new TrustFiles()
  return {
    async probe(target, attempt, limits) {
      const problem = inputProblem(target, attempt)
      if (problem !== null) return notVerified('bad-input', problem)
      const controller = new AbortController()
      const callOff = atDeadline(limits, () => controller.abort())
      try {
        return await logIn({ client, trustFiles }, { target, attempt, limits }, controller.signal)
      } catch {
        return notVerified('unknown', 'The probe could not be made.')
      } finally {
        callOff()
      }
    },
    close() {
      client.close()
      trustFiles.close()
    },
  }
}

interface Probe {
  readonly target: LoginTarget
  readonly attempt: LoginAttempt
  readonly limits: ProbeLimits
}

async function logIn(
  { client, trustFiles }: { readonly client: SmfClient; readonly trustFiles: TrustFiles },
  { target, attempt, limits }: Probe,
  signal: AbortSignal,
): Promise<Verdict> {
  const startedMs = performance.now()
  let commonNames: readonly string[] | null = null
  if (target.protocol === 'smfs') {
    const preflight = await tlsPreflight(target, signal)
    if (!preflight.passed) return preflight.verdict
    // The library compares the certificate at an address with the name `localhost`, unless it is given common names to
    // compare with: those of the certificate that has just been checked.
    if (isIP(target.host) !== 0) commonNames = preflight.commonNames
    if (commonNames?.length === 0) return NAMELESS
  }
  const { caCertificate } = target
  const request = {
    url: urlOf(target),
    msgVpnName: target.msgVpnName,
    username: attempt.username,
    password: attempt.password.reveal(),
    compressed: target.protocol === 'smfc',
    trustFile: target.protocol === 'smfs' && caCertificate !== undefined ? trustFiles.pathOf(caCertificate) : null,
    commonNames,
    timeoutMs: limits.timeoutMs - (performance.now() - startedMs),
  }
  return client.logIn(request, signal)
}

const NAMELESS = notVerified(
  'tls-failed',
  'The certificate has no common name, by which alone the SMF client can check it at an IP address; give a host name.',
)

const SCHEMES: Partial<Readonly<Record<Protocol, string>>> = { smf: 'tcp', smfc: 'tcp', smfs: 'tcps' }

const urlOf = ({ protocol, host, port }: LoginTarget): string => `${SCHEMES[protocol]}://${hostInUrl(host)}:${port}`

/** What solclientjs takes, in characters. */
const MAX_LENGTHS = { username: 189, password: 128, msgVpnName: 32 }
const WORDS = { username: 'username', password: 'password', msgVpnName: 'name of the message VPN' }

/** The library sends one byte for each character, and what is beyond a byte as something else. */
function inputProblem({ protocol, host, msgVpnName }: LoginTarget, attempt: LoginAttempt): string | null {
  if (SCHEMES[protocol] === undefined) return 'The protocol is none of SMF.'
  if (hostInUrl(host) === null) return 'The host is neither a host name nor an IP address.'
  const values = { username: attempt.username, password: attempt.password.reveal(), msgVpnName }
  for (const key of ['username', 'password', 'msgVpnName'] as const) {
    const value = values[key]
    if (value === '') return `The ${WORDS[key]} is empty.`
    if (value.length > MAX_LENGTHS[key]) return `The ${WORDS[key]} is longer than ${MAX_LENGTHS[key]} characters.`
    if (Buffer.byteLength(value) !== value.length || value.includes('\0')) {
      return `The ${WORDS[key]} has characters other than ASCII, which SMF clients cannot send.`
    }
  }
  return null
}

function hostInUrl(host: string): string | null {
  if (isIPv6(host)) return `[${host}]`
  if (/[\s/\\?#@:]/.test(host)) return null
  const ascii = domainToASCII(host)
  return /^[a-z0-9._-]+$/i.test(ascii) ? ascii : null
}
