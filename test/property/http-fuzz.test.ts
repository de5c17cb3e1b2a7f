import { createHash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HttpDependencies } from '../../src/http/dependencies.ts'
import { noEngine, withApi } from '../helpers/http.ts'
import { type RawAnswer, rawExchange } from '../helpers/raw-http.ts'
import { type TableDigest, tableDigester } from '../helpers/table-digest.ts'
import { bytesOf, type FuzzRequest, isSafe, type Operation, operationsOf, requestsOf } from './http-fuzz-requests.ts'
import { inWorld, KNOWN, newWorld, type World } from './http-fuzz-world.ts'

/** Most requests for one operation, and the time after which no further one begins. */
const LIMITS = {
  ofRead: { runs: 20, timeMs: 30 },
  ofWrite: { runs: 40, timeMs: 80 },
  ofBytes: { runs: 500, timeMs: 1000 },
}
/** A world that was changed so often is made anew. */
const CHANGES = 6

/**
 * Tables that a refused request may write to: `audit` says that it was refused, `sign_in_attempts` counts wrong passwords
 * so that nobody guesses long.
 */
const MAY_BE_WRITTEN = ['audit', 'sign_in_attempts'] as const

/** A hash that costs nothing: what passwords cost is no matter here. */
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const passwords: HttpDependencies['passwords'] = {
  hash: async (password) => hashOf(password.reveal()),
  verify: async (hash, password) => hash === hashOf(password.reveal()),
}
/** Brokers are none of this file's business. */
const engine: HttpDependencies['engine'] = {
  ...noEngine,
  planPair: async () => null,
  async *planBroker() {},
  async *verify() {},
  reconcilePair: async () => ({ status: 'busy' }),
  orphans: async () => [],
  deleteOrphans: async () => [],
}

const api = await withApi({ dependencies: { passwords, engine } })
const { operations, schemas } = operationsOf(api.app.swagger())
/** Served, and not described; or not served at all. */
const UNDESCRIBED: readonly Operation[] = [
  '/api/v2/apim/openapi.json',
  '/api/v2/apim/docs/{file}',
  '/api/v2/apim/docs/static/{file}',
  '/nowhere/{id}',
].map((path) => ({ method: 'GET', path, queries: [], body: null, token: 'apiToken' }))
const ALL = [...operations, ...UNDESCRIBED]
const nameOf = ({ method, path }: Pick<Operation, 'method' | 'path'>): string => `${method} ${path}`

let port: number
let digest: () => Promise<TableDigest>
let world: World | null = null
let changes = 0
let worldsMs = 0
/** Without the time that worlds took. */
const clockMs = (): number => performance.now() - worldsMs
let written: TableDigest = {}
const statuses = new Map<string, Set<number>>(ALL.map((operation) => [nameOf(operation), new Set()]))

beforeAll(async () => {
  await api.app.listen({ port: 0, host: '127.0.0.1' })
  port = (api.app.server.address() as AddressInfo).port
  digest = await tableDigester(api.db, { without: MAY_BE_WRITTEN })
  written = await digest()
})
afterAll(() => api[Symbol.asyncDispose]())

/** What was changed so that later requests would find less is made anew. */
async function freshWorld(): Promise<World> {
  if (world === null) {
    const startedMs = performance.now()
    world = await newWorld(api)
    changes = 0
    written = await digest()
    worldsMs += performance.now() - startedMs
  }
  return world
}

async function send(request: FuzzRequest): Promise<RawAnswer | null> {
  const met = await freshWorld()
  const body = request.body === null ? null : inWorld(request.body, met)
  const filled = { ...request, target: inWorld(request.target, met), body }
  const { bytes, halfClose } = bytesOf(filled, request.token === null ? null : met[request.token])
  return rawExchange(port, bytes, { halfClose })
}

/** The shape of the description, said by hand and not with the program's own schema. */
function expectError({ status, headers, body }: RawAnswer): void {
  const { message, errorId, validationDetails = {}, meta = {}, ...more } = JSON.parse(body) as Record<string, unknown>
  expect({ status, type: headers['content-type'], more, message, errorId }).toEqual({
    status,
    type: 'application/json; charset=utf-8',
    more: {},
    message: expect.stringMatching(/^.{4,256}$/su),
    errorId: expect.stringMatching(/^[\w-]{2,64}$/),
  })
  expect(meta).toEqual(expect.objectContaining({}))
  for (const texts of Object.values(validationDetails as Readonly<Record<string, readonly string[]>>)) {
    expect(texts.length).toBeGreaterThan(0)
    for (const text of texts) expect(text).toMatch(/^.{4,1024}$/su)
  }
  // Nothing of the program's inside.
  expect(body).not.toMatch(/node_modules|\.ts:\d|\bat (async )?[A-Z]\w*\.|syntax error at|violates|relation "/)
}

/** Whether a server may be at a loss where the request ends, and close the connection without an answer. */
const isUnclear = ({ lengthLie, chunked, headers }: FuzzRequest): boolean =>
  lengthLie !== 0 || chunked || headers.some(([name]) => ['transfer-encoding', 'content-length'].includes(name))

async function check(request: FuzzRequest): Promise<void> {
  const answer = await send(request)
  if (answer === null) expect(isUnclear(request)).toBe(true)
  else statuses.get(nameOf(request))?.add(answer.status)
  const isAccepted = await expectNoHarm(request.method, answer)
  if (!isAccepted || isSafe(request.method)) return
  changes += 1
  if (changes === CHANGES || request.method === 'DELETE' || request.path.startsWith('/api/v0/')) world = null
}

/** True when it was accepted. */
async function expectNoHarm(method: string, answer: RawAnswer | null): Promise<boolean> {
  const [before, after] = [written, await digest()]
  written = after
  if (answer !== null && answer.status >= 500) throw new Error(`${answer.status}: ${answer.body}`)
  const isAccepted = answer !== null && answer.status < 400
  if (answer !== null && !isAccepted && method !== 'HEAD') expectError(answer)
  if (!isAccepted || isSafe(method)) expect(after, 'what is written').toEqual(before)
  return isAccepted
}

describe('no request', () => {
  it.each(ALL.map((operation) => [nameOf(operation), operation] as const))(
    'to %s ends in an error of the service, or writes when it is refused',
    async (_name, operation) => {
      const { runs, timeMs } = isSafe(operation.method) ? LIMITS.ofRead : LIMITS.ofWrite
      const deadlineMs = clockMs() + timeMs
      // One that is under way is never left alone: what it writes would be blamed on the next.
      const checkInTime = (request: FuzzRequest) => (clockMs() < deadlineMs ? check(request) : undefined)
      await fc.assert(
        fc.asyncProperty(requestsOf(operation, schemas, KNOWN), async (request) => checkInTime(request)),
        { numRuns: runs },
      )
    },
  )

  it('was left out: most operations did something, and refused something', () => {
    const seen = [...statuses].map(([name, each]) => ({ name, statuses: [...each] }))
    const never = (isMeant: (status: number) => boolean) =>
      seen.filter((each) => !each.statuses.some(isMeant)).map(({ name }) => name)
    // A slow machine sends less to each.
    expect(never((status) => status < 300).length).toBeLessThan(ALL.length / 2)
    expect(never((status) => status >= 400).length).toBeLessThan(ALL.length / 2)
  })
})

describe('bytes that are no request', () => {
  const authorized = async (): Promise<string> => {
    const { apiToken } = await freshWorld()
    return `host: a\r\nauthorization: Bearer ${apiToken}\r\n`
  }

  it.each<readonly [sentence: string, text: string, status: number]>([
    ['without a host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['of another version', 'GET /healthz HTTP/3.0\r\nhost: a\r\n\r\n', 400],
    ['of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['of no protocol', '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n', 400],
    ['with a method that is none', 'FETCH /healthz HTTP/1.1\r\nhost: a\r\n\r\n', 400],
    ['with a space in the address', 'GET /a b HTTP/1.1\r\nhost: a\r\n\r\n', 400],
    ['with NUL in the address', 'GET /a\0b HTTP/1.1\r\nhost: a\r\n\r\n', 400],
    ['with NUL in a header', 'GET /healthz HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n', 400],
    ['with two lengths', 'POST /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 400],
    [
      'with a length and chunks',
      'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
    ],
    ['with too many headers', `GET /healthz HTTP/1.1\r\nhost: a\r\n${'x: y\r\n'.repeat(9000)}\r\n`, 431],
    ['with an address that is too long', `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 431],
  ])('%s are answered in the one shape', async (_sentence, text, status) => {
    const answer = await rawExchange(port, Buffer.from(text, 'latin1'))
    expect(answer?.status).toBe(status)
    if (answer !== null) expectError(answer)
  })

  it('after a request that is whole leave it its own answer', async () => {
    const request = `DELETE /api/v2/apim/appRegistrations/app-1 HTTP/1.1\r\n${await authorized()}\r\n`
    const before = await digest()
    const answer = await rawExchange(port, Buffer.from(`${request}this is no HTTP\r\n\r\n`))
    expect(answer?.status).toBe(204)
    written = await digest()
    expect(written).not.toEqual(before)
    world = null
  })

  it('are refused, or are a request after all', async () => {
    const deadlineMs = clockMs() + LIMITS.ofBytes.timeMs
    const change = fc.tuple(
      fc.nat(400),
      fc.nat(3),
      fc.constantFrom('', '\0', '\r', '\n', '\r\n', ' ', ':', '\xff', '/', 'A'),
    )
    const changes = fc.array(change, { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(changes, async (each) => {
        if (clockMs() > deadlineMs) return
        const head = `GET /api/v2/apim/gateways?pageSize=1 HTTP/1.1\r\nconnection: close\r\n${await authorized()}`
        const text = each.reduce((all, [at, cut, put]) => all.slice(0, at) + put + all.slice(at + cut), head)
        await expectNoHarm('GET', await rawExchange(port, Buffer.from(`${text}\r\n\r\n`, 'latin1')))
      }),
      { numRuns: LIMITS.ofBytes.runs },
    )
  })
})
