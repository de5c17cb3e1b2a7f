import fc from 'fast-check'
import { expect } from 'vitest'
import type { Answer } from '../helpers/http.ts'
import type { Write } from './http-history.ts'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

export interface ObjectBody {
  readonly data: Readonly<Record<string, unknown>>
}

/** A call below the registrations; `ifMatch` is an ETag. */
export type Request = (method: Method, path: string, body?: object, ifMatch?: string) => Promise<Answer<ObjectBody>>

export const etagOf = ({ headers }: Answer): string => String(headers.etag)

/** Registrations that stay, and some that come and go with all that hangs on them. */
export const STAYING = ['stays-1', 'stays-2']
export const PASSING = ['passes-1', 'passes-2']
const ALL = [...STAYING, ...PASSING]
const KEYS = Array.from({ length: 5 }, (_, index) => `storm-key-${index}`)
const REQUESTS = ['request-1', 'request-2']

/** What a client does in one step; `number` is its own and goes into what it writes. */
export type Act = (storm: Storm, number: number) => Promise<void>

/** Calls, and what the successful ones were answered. */
export class Storm {
  readonly history: Write[] = []
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  /** Asks, and keeps what came of it. With `isSure` it reads first and names the ETag. */
  async act(
    effect: Write['effect'],
    path: string,
    { body, isSure = false }: { readonly body?: object; readonly isSure?: boolean },
  ): Promise<void> {
    const at = `/${path}`
    const read = isSure ? await this.#request('GET', at) : null
    if (read !== null && read.status !== 200) return
    const ifMatch = read === null ? null : etagOf(read)
    const startedMs = performance.now()
    const target = effect === 'create' ? at.slice(0, at.lastIndexOf('/')) : at
    const method = ({ create: 'POST', change: 'PATCH', delete: 'DELETE' } as const)[effect]
    const answer = await this.#request(method, target, body, ifMatch ?? undefined)
    expect([200, 201, 204, 400, 404, 409, 412]).toContain(answer.status)
    if (answer.status >= 300) return
    const content = effect === 'delete' ? null : contentOf(path, answer.body.data)
    this.history.push({ path, effect, content, ifMatch, startedMs, endedMs: performance.now() })
  }
}

/** What only clients change: not that brokers have followed, nor what hangs on a registration. */
export function contentOf(path: string, data: Readonly<Record<string, unknown>>): string {
  if (!path.includes('/')) return JSON.stringify([data.name, data.sourceOwner])
  if (path.includes('/accessRequests/')) return JSON.stringify([data.planId, isCounted(data) ? 'APPROVED' : data.state])
  return JSON.stringify(data)
}

export const isCounted = ({ state }: Readonly<Record<string, unknown>>): boolean =>
  ['APPROVED', 'LIVE', 'ERROR'].includes(String(state))

export const anyAct: fc.Arbitrary<Act> = fc
  .record({
    registration: fc.constantFrom(...ALL),
    passing: fc.constantFrom(...PASSING),
    key: fc.constantFrom(...KEYS),
    id: fc.constantFrom(...REQUESTS),
    state: fc.constantFrom('REVOKED', 'PENDING_APPROVAL', 'APPROVED'),
    isSure: fc.boolean(),
    what: fc.constantFrom(
      ...(['registration', 'passing', 'credential', 'credential', 'request', 'request', 'attribute'] as const),
    ),
    effect: fc.constantFrom('create', 'create', 'change', 'delete'),
  })
  .map(({ registration, passing, key, id, state, isSure, what, effect }): Act => {
    return (storm, number) => {
      const options = (create: object, change: object) =>
        effect === 'delete' ? { isSure } : effect === 'create' ? { body: create } : { body: change, isSure }
      switch (what) {
        case 'registration':
          return storm.act('change', registration, { body: { name: `Name ${number}` }, isSure })
        case 'passing':
          return storm.act(effect, passing, {
            ...options(newRegistration(passing, number), { sourceOwner: `owner ${number}` }),
          })
        case 'credential': {
          const secret = { consumerKey: key, consumerSecret: `secret-number-${number}` }
          return storm.act(effect, `${registration}/credentials/${key}`, options({ name: key, secret }, { secret }))
        }
        case 'request': {
          const asked = { accessRequestId: id, eventApiProductId: 'orders', planId: 'gold' }
          // Its contents come back, and with them its ETags: a name would say nothing.
          const { isSure: _isSure, ...rest } = options(asked, { state }) as { isSure?: boolean; body?: object }
          return storm.act(effect, `${registration}/accessRequests/${id}`, rest)
        }
        case 'attribute':
          return storm.act(
            effect,
            `${registration}/attributes/${key}`,
            options({ name: key, value: `new ${number}` }, { value: `value ${number}` }),
          )
        default: {
          const unreachable: never = what
          return unreachable
        }
      }
    }
  })

export const newRegistration = (registrationId: string, number: number) => ({
  registrationId,
  source: 'portal',
  name: `New ${number}`,
})

/** All that the storm may touch. */
export const PATHS: readonly string[] = ALL.flatMap((registration) => [
  registration,
  ...KEYS.flatMap((key) => [`${registration}/credentials/${key}`, `${registration}/attributes/${key}`]),
  ...REQUESTS.map((id) => `${registration}/accessRequests/${id}`),
])
