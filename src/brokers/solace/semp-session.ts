import { Buffer } from 'node:buffer'
import type { Secret } from '../../domain/secret.ts'

/** How one request proves who it is. */
export interface SessionTicket {
  readonly headers: Readonly<Record<string, string>>
  readonly by: 'cookie' | 'basic'
  /** Which session the cookie is of. */
  readonly session: number
  /** This request opens the session that others wait for. */
  readonly opens: boolean
}

const BASE_HEADERS = { accept: 'application/json', 'user-agent': 'keymesh' }

/**
 * SEMP opens a session for every basic login and has few of them (529 when they are used up), so one request logs in,
 * the others wait for its cookie and send nothing else until it is refused. A service that sets no cookie, or refuses
 * the cookie it just set, gets basic authentication with every request, besides its cookies.
 */
export class SempSession {
  readonly #username: string
  readonly #password: Secret
  readonly #cookies = new Map<string, string>()
  #headers: Readonly<Record<string, string>> | null = null
  #session = 0
  #isProven = false
  #basicOnly = false
  #opening: { readonly ended: Promise<unknown>; readonly end: (failure: unknown) => void } | null = null

  constructor(username: string, password: Secret) {
    this.#username = username
    this.#password = password
  }

  /** Waits for a login that is under way; throws what it failed with, if that is shared. */
  async enter(untilAborted: <Result>(wait: Promise<Result>) => Promise<Result>): Promise<SessionTicket> {
    while (this.#opening !== null) {
      const failure = await untilAborted(this.#opening.ended)
      if (failure !== undefined) throw failure
    }
    if (this.#cookies.size > 0 && !this.#basicOnly) {
      return { headers: this.#cookieHeaders(), by: 'cookie', session: this.#session, opens: false }
    }
    const opens = !this.#basicOnly
    if (opens) this.#open()
    const headers = { ...this.#cookieHeaders(), authorization: this.#basicHeader() }
    return { headers, by: 'basic', session: this.#session, opens }
  }

  /** After an answer of the broker that was not a refusal of the login: keeps its cookies. */
  answered(ticket: SessionTicket, setCookie: readonly string[]): void {
    if (ticket.session !== this.#session) return
    for (const line of setCookie) this.#keep(line)
    if (ticket.by === 'cookie') {
      this.#isProven = true
      return
    }
    if (!ticket.opens) return
    this.#session += 1
    this.#isProven = false
    if (this.#cookies.size === 0) this.#basicOnly = true
    this.#release(undefined)
  }

  /** After a request that did not get past the login: `failure` is shared with those who wait, else they try. */
  failed(ticket: SessionTicket, failure: unknown): void {
    if (ticket.opens && ticket.session === this.#session) this.#release(failure)
  }

  /** After a 401 to a cookie: the session ended, unless it was replaced in the meantime. */
  refused(ticket: SessionTicket): void {
    if (ticket.session !== this.#session) return
    this.#cookies.clear()
    this.#headers = null
    if (!this.#isProven) this.#basicOnly = true
    this.#session += 1
  }

  #open(): void {
    let end: (failure: unknown) => void = () => undefined
    const ended = new Promise<unknown>((resolve) => {
      end = resolve
    })
    this.#opening = { ended, end }
  }

  #release(failure: unknown): void {
    this.#opening?.end(failure)
    this.#opening = null
  }

  #keep(setCookie: string): void {
    const [pair = '', ...attributes] = setCookie.split(';')
    const equals = pair.indexOf('=')
    if (equals < 1) return
    const name = pair.slice(0, equals).trim()
    this.#headers = null
    const isGone = attributes.some((attribute) => /^\s*max-age\s*=\s*(0|-\d+)\s*$/i.test(attribute))
    if (isGone) this.#cookies.delete(name)
    else this.#cookies.set(name, pair.slice(equals + 1).trim())
  }

  /** Every request of a sweep sends them, so they are put together once per change. */
  #cookieHeaders(): Readonly<Record<string, string>> {
    if (this.#headers === null) {
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      this.#headers = cookie === '' ? BASE_HEADERS : { ...BASE_HEADERS, cookie }
    }
    return this.#headers
  }

  #basicHeader(): string {
    return `Basic ${Buffer.from(`${this.#username}:${this.#password.reveal()}`, 'utf8').toString('base64')}`
  }
}
