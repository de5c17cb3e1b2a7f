import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'

export interface SempReply {
  readonly httpStatus: number
  /** `meta.error.code`; null on success. */
  readonly code: number | null
  readonly status: string | null
  readonly description: string
  readonly data: unknown
  readonly collections: unknown
  readonly meta: {
    readonly responseCode: number
    readonly request: { readonly method: string; readonly uri: string }
    readonly paging?: { readonly cursorQuery: string; readonly nextPageUri: string }
  }
  readonly links: unknown
  readonly cookie: string | null
}

export type Step = readonly [method: string, path: string, body?: unknown]

const authorization = (broker: SandboxBroker) => `Basic ${btoa(`${broker.username}:${broker.password}`)}`

/** A client that keeps its session, as a good one does. `path` is relative to the message VPN unless it begins with `/`. */
export class SempTestClient {
  readonly #broker: SandboxBroker
  #cookie: string | null = null

  constructor(broker: SandboxBroker) {
    this.#broker = broker
  }

  async send([method, path, body]: Step, headers: Readonly<Record<string, string>> = {}): Promise<SempReply> {
    const { url, msgVpnName } = this.#broker
    const target = path.startsWith('/') ? path : `/SEMP/v2/config/msgVpns/${msgVpnName}${path === '' ? '' : `/${path}`}`
    const response = await fetch(url + target, {
      method,
      headers: {
        authorization: authorization(this.#broker),
        'content-type': 'application/json',
        ...(this.#cookie !== null && { cookie: this.#cookie }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const cookie = response.headers.get('set-cookie')
    if (cookie !== null) this.#cookie = cookie.split(';', 1)[0] ?? null
    const text = await response.text()
    const isJson = response.headers.get('content-type') === 'application/json'
    const parsed = isJson ? JSON.parse(text) : { meta: { error: { description: text } } }
    return {
      httpStatus: response.status,
      code: parsed.meta?.error?.code ?? null,
      status: parsed.meta?.error?.status ?? null,
      description: parsed.meta?.error?.description ?? '',
      data: parsed.data,
      collections: parsed.collections,
      meta: parsed.meta,
      links: parsed.links,
      cookie,
    }
  }

  /** Follows the cursor to the end; bounded. Returns what each page held. */
  async pages(path: string): Promise<Record<string, unknown>[][]> {
    const pages: Record<string, unknown>[][] = []
    let cursor: string | undefined
    do {
      const joint = path.includes('?') ? '&' : '?'
      const reply = await this.send(['GET', cursor === undefined ? path : `${path}${joint}cursor=${cursor}`])
      pages.push(reply.data as Record<string, unknown>[])
      cursor = reply.meta.paging?.cursorQuery
      if (pages.length > 1000) throw new Error(`${path} never ends`)
    } while (cursor !== undefined)
    return pages
  }
}
