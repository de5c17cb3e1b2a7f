import { z } from 'zod'
import { codeOf, KeymeshError } from '../domain/errors.ts'
import { PERMISSIONS } from '../domain/permissions.ts'
import type { RemoteAccess } from '../domain/remote-catalogue.ts'
import { Secret } from '../domain/secret.ts'
import type { BoundedAnswer, BoundedHttp } from './bounded-http.ts'
import { answerError, statusError } from './remote-errors.ts'
import { parseJson, urlBelow } from './remote-json.ts'

/** Where the API tokens of the calls come from. */
export interface ApimTokens {
  /** One that is good for now. */
  current(): Promise<Secret>
  /** After a 401 for `refused`: another one, or null when there is none to be had. */
  renewed(refused: Secret): Promise<Secret | null>
  /** Gives back what was made. */
  close(): Promise<void>
}

export function fixedToken(token: Secret): ApimTokens {
  return { current: async () => token, renewed: async () => null, close: async () => undefined }
}

export interface SignInOptions {
  readonly http: BoundedHttp
  readonly access: Extract<RemoteAccess, { kind: 'sign-in' }>
  readonly now: () => number
  /** Of the API tokens that are made, so that a person knows whose they are. */
  readonly tokenName: string
}

const MAX_TOKEN_BYTES = 256 * 1024
/** A token is replaced this long before it ends, a shorter one in the middle of its life. */
const RENEW_BEFORE_MS = 60_000
/** A service that counts failed sign-ins is not asked every minute. */
const REFUSED_FOR_MS = 10 * 60_000
/** A renewal that runs in circles would make tokens without end. */
const YOUNG_MS = 5_000

interface MadeToken {
  readonly id: string | null
  readonly token: Secret
  readonly userToken: Secret
  readonly madeAtMs: number
  /** Null: not known, it is renewed when it is refused. */
  readonly expiresAtMs: number | null
}

/**
 * API tokens by the three calls of the specification, section 4.4: user token, token of the account, API token. One at a
 * time; the one before is deleted when the next one is there.
 */
export class SignInTokens implements ApimTokens {
  readonly #options: SignInOptions
  #made: MadeToken | null = null
  #making: Promise<MadeToken> | null = null
  #refused: { readonly error: unknown; readonly untilMs: number } | null = null

  constructor(options: SignInOptions) {
    this.#options = options
  }

  async current(): Promise<Secret> {
    const made = this.#made
    if (made !== null && !this.#endsSoon(made)) return made.token
    return (await this.#renew()).token
  }

  async renewed(refused: Secret): Promise<Secret | null> {
    const made = this.#made
    if (made !== null && made.token !== refused) return made.token
    if (made !== null && this.#options.now() - made.madeAtMs < YOUNG_MS) return null
    return (await this.#renew()).token
  }

  async close(): Promise<void> {
    const made = this.#made
    this.#made = null
    if (made === null || made.id === null) return
    if (await this.#delete(made.id, made.userToken)) return
    // The user token of a long run has ended by now.
    const userToken = await this.#signIn().catch(() => null)
    if (userToken !== null) await this.#delete(made.id, userToken)
  }

  #endsSoon({ madeAtMs, expiresAtMs }: MadeToken): boolean {
    if (expiresAtMs === null) return false
    const marginMs = Math.min(RENEW_BEFORE_MS, (expiresAtMs - madeAtMs) / 2)
    return this.#options.now() >= expiresAtMs - marginMs
  }

  /** Shared by all that need it at the same time. */
  #renew(): Promise<MadeToken> {
    this.#making ??= this.#make().finally(() => {
      this.#making = null
    })
    return this.#making
  }

  async #make(): Promise<MadeToken> {
    const former = this.#made
    const userToken = await this.#signIn()
    const made = await this.#makeApiToken(userToken)
    this.#made = made
    if (former?.id != null) await this.#delete(former.id, userToken)
    return made
  }

  async #signIn(): Promise<Secret> {
    const { access, now } = this.#options
    if (this.#refused !== null && now() < this.#refused.untilMs) throw this.#refused.error
    try {
      const userToken = await this.#userToken({ username: access.username, password: access.password.reveal() })
      this.#refused = null
      if (access.account === null) return userToken
      return await this.#accountToken(userToken, access.account)
    } catch (error) {
      if (REFUSALS.has(codeOf(error))) this.#refused = { error, untilMs: now() + REFUSED_FOR_MS }
      throw error
    }
  }

  async #userToken(body: { readonly username: string; readonly password: string }): Promise<Secret> {
    const answer = await this.#post('/api/v1/iam/tokens', JSON.stringify(body), null)
    if (answer.status === 401 || answer.status === 400) throw signInRefused(this.#options.access)
    return this.#read(answer, '/api/v1/iam/tokens', userTokenAnswer).token
  }

  async #accountToken(userToken: Secret, account: string): Promise<Secret> {
    const path = `/api/v0/iam/tokens/${encodeURIComponent(account)}`
    return this.#read(await this.#post(path, '', userToken), path, userTokenAnswer).token
  }

  async #makeApiToken(userToken: Secret): Promise<MadeToken> {
    const body = JSON.stringify({ name: this.#options.tokenName, permissions: PERMISSIONS })
    const answer = await this.#post(API_TOKENS, body, userToken)
    const { id, token, expirationTimestamp } = this.#read(answer, API_TOKENS, apiTokenAnswer).data
    const madeAtMs = this.#options.now()
    const expiresAtMs =
      expirationTimestamp ?? expiryOf(token) ?? (id === null ? null : await this.#expiryOf(id, userToken))
    return {
      id,
      token,
      userToken,
      madeAtMs,
      expiresAtMs: expiresAtMs !== null && expiresAtMs > madeAtMs ? expiresAtMs : null,
    }
  }

  /** The answer that makes a token may not say when it ends; the one that describes it may. */
  async #expiryOf(id: string, userToken: Secret): Promise<number | null> {
    try {
      const path = `${API_TOKENS}/${encodeURIComponent(id)}`
      const answer = await this.#send('GET', path, undefined, userToken)
      if (answer.status !== 200) return null
      return this.#read(answer, path, apiTokenDescription).data.expirationTimestamp
    } catch {
      return null
    }
  }

  async #delete(id: string, userToken: Secret): Promise<boolean> {
    const path = `${API_TOKENS}/${encodeURIComponent(id)}`
    try {
      const { status } = await this.#send('DELETE', path, undefined, userToken)
      return (status >= 200 && status < 300) || status === 404
    } catch {
      return false
    }
  }

  #post(path: string, body: string, bearer: Secret | null): Promise<BoundedAnswer> {
    return this.#send('POST', path, body, bearer)
  }

  #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body: string | undefined,
    bearer: Secret | null,
  ): Promise<BoundedAnswer> {
    const headers = {
      ...(body === undefined || body === '' ? {} : { 'content-type': 'application/json' }),
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer.reveal()}` }),
    }
    return this.#options.http.send({ method, url: this.#url(path), headers, body, maxBytes: MAX_TOKEN_BYTES })
  }

  #read<Shape>({ status, text }: BoundedAnswer, path: string, schema: z.ZodType<Shape>): Shape {
    const asked = { method: 'POST', url: this.#url(path) }
    if (status < 200 || status >= 300) throw statusError(asked, status)
    const parsed = schema.safeParse(parseJson(asked, text))
    if (!parsed.success) throw answerError(asked, 'it holds no token')
    return parsed.data
  }

  #url(path: string): URL {
    return urlBelow(this.#options.access.url, path)
  }
}

const API_TOKENS = '/api/v0/user/apiTokens'
const REFUSALS: ReadonlySet<string> = new Set(['REMOTE_SIGN_IN_REFUSED', 'REMOTE_FORBIDDEN', 'REMOTE_NOT_FOUND'])

/** What goes into a header; a token with line breaks or blanks is none. */
const tokenText = z
  .string()
  .regex(/^[\x21-\x7e]{1,16384}$/)
  .transform((text) => new Secret(text))
const time = z
  .number()
  .int()
  .positive()
  .nullish()
  .catch(null)
  .transform((value) => value ?? null)

const userTokenAnswer = z.object({ token: tokenText })
const apiTokenAnswer = z.object({
  data: z.object({
    id: z
      .string()
      .min(1)
      .max(256)
      .nullish()
      .transform((id) => id ?? null),
    token: tokenText,
    expirationTimestamp: time,
  }),
})
const apiTokenDescription = z.object({ data: z.object({ expirationTimestamp: time }) })

/** Of a JWT; null for a token of any other form. Nobody is trusted for it: it only says when to ask for another. */
function expiryOf(token: Secret): number | null {
  const [, payload, signature] = token.reveal().split('.')
  if (payload === undefined || signature === undefined) return null
  try {
    const claims = z
      .object({ exp: z.number().positive() })
      .safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
    return claims.success ? claims.data.exp * 1000 : null
  } catch {
    return null
  }
}

function signInRefused({ url, username }: SignInOptions['access']): KeymeshError {
  return new KeymeshError({
    code: 'REMOTE_SIGN_IN_REFUSED',
    fate: 'stop',
    message: `${new URL(url).host} refused the sign-in of ${username}.`,
    hint: 'Correct KEYMESH_AUTH_USERNAME and KEYMESH_AUTH_PASSWORD; it is tried again ten minutes later, or after a restart.',
  })
}
