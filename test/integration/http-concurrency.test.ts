import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type Answer, callerOf, peopleOf, type TestApi } from '../helpers/http.ts'
import { type RunningMesh, startRunningMesh } from '../helpers/running-mesh.ts'
import { until } from '../helpers/service.ts'
import { contradictions } from './http-history.ts'
import { REGISTRATIONS } from './http-registrations-fixture.ts'
import {
  anyAct,
  contentOf,
  etagOf,
  isCounted,
  newRegistration,
  type ObjectBody,
  PASSING,
  PATHS,
  type Request,
  STAYING,
  Storm,
} from './http-storm.ts'
import { ordersPortal } from './reconcile-fixtures.ts'

const CLIENTS = 50
const STEPS = 8

let running: RunningMesh
let app: App
let call: TestApi['call']

beforeAll(async () => {
  running = await startRunningMesh({
    brokers: 2,
    env: { KEYMESH_GRACE_PERIOD: '1s' },
    broker: (broker) => ({
      ...broker,
      // Whatever clients take back may go, and a queue may change its owner.
      policy: { ...DEFAULT_BROKER_POLICY, disruptive: 'allow', maxWithdrawals: 1000 },
    }),
  })
  await running.import(ordersPortal(running.brokers, []))
  const { enqueue } = await running.start()
  const { db, sealer, now, log, config, engine, passwords, userTokens } = running.mesh.context
  const dependencies = { db, sealer, now, log, config, engine, passwords, userTokens, random: cryptoRandom, enqueue }
  app = await createApp({ ...dependencies, config: { ...config, rateLimitPerMinute: 0 }, checkAnswers: true })
  await app.ready()
  const { apiToken } = await peopleOf(dependencies).addUser({ name: 'admin' })
  call = callerOf(app, apiToken)
}, 120_000)
afterAll(async () => {
  await app?.close()
  await running?.[Symbol.asyncDispose]()
})

/** Below the registrations. No answer may be an error of the service. */
const request: Request = async (method, path, body, ifMatch) => {
  const answer = await call<ObjectBody>(method, `${REGISTRATIONS}${path}`, {
    ...(body === undefined ? {} : { body }),
    ...(ifMatch === undefined ? {} : { headers: { 'if-match': ifMatch } }),
  })
  expect({ method, path, ...answer }).toMatchObject({ status: expect.toSatisfy((status: number) => status < 500) })
  return answer
}

const atOnce = <Result>(work: (client: number) => Promise<Result>): Promise<Result[]> =>
  Promise.all(Array.from({ length: CLIENTS }, (_, client) => work(client)))

/** How often each status was answered. */
function tally(answers: readonly Answer[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** One of everything that can be created, changed and deleted, each with a content that only this client writes. */
interface Kind {
  readonly created: number
  readonly collection: string
  readonly id: string
  readonly create: (id: string) => object
  readonly change: (client: number) => object
}
const KINDS: readonly (readonly [name: string, kind: Kind])[] = [
  [
    'registration',
    {
      created: 201,
      collection: '',
      id: 'shared',
      create: (registrationId) => ({ registrationId, source: 'portal', name: 'New' }),
      change: (client) => ({ name: `Name ${client}` }),
    },
  ],
  [
    'attribute',
    {
      created: 200,
      collection: '/shared/attributes',
      id: 'color',
      create: (name) => ({ name, value: 'new' }),
      change: (client) => ({ value: `value ${client}` }),
    },
  ],
  [
    'filter',
    {
      created: 200,
      collection: '/shared/filters',
      id: 'region',
      create: (name) => ({ name, values: ['new'] }),
      change: (client) => ({ values: [`value${client}`] }),
    },
  ],
  [
    'credential',
    {
      created: 200,
      collection: '/shared/credentials',
      id: 'shared-key',
      create: (consumerKey) => ({ name: 'main', secret: { consumerKey } }),
      change: (client) => ({ secret: { consumerKey: 'shared-key', consumerSecret: `secret-of-client-${client}` } }),
    },
  ],
  [
    'webhook',
    {
      created: 201,
      collection: '/shared/webhooks',
      id: 'hook',
      create: (name) => ({ name, uri: 'https://hooks.example.org', method: 'POST' }),
      change: (client) => ({ uri: `https://hooks.example.org/${client}` }),
    },
  ],
  [
    'access request',
    {
      created: 200,
      collection: '/shared/accessRequests',
      id: 'request-1',
      create: (accessRequestId) => ({ accessRequestId, eventApiProductId: 'orders', planId: 'gold' }),
      change: () => ({ state: 'REVOKED' }),
    },
  ],
]

describe(`${CLIENTS} clients at once`, { timeout: 120_000 }, () => {
  it.each(KINDS)('create one %s, and one of them succeeds', async (_name, { collection, id, create, created }) => {
    const answers = await atOnce(() => request('POST', collection, create(id)))
    const refused = collection === '' ? 409 : 400
    expect(tally(answers)).toEqual({ [created]: 1, [refused]: CLIENTS - 1 })
  })

  it.each(KINDS)('change one %s with one ETag, and one of them succeeds', async (_name, { collection, id, change }) => {
    const path = `${collection}/${id}`
    // The worker makes a new access request LIVE, which is a change, too.
    await running.settled([0, 1])
    const etag = etagOf(await request('GET', path))
    const answers = await atOnce((client) => request('PATCH', path, change(client), etag))
    expect(tally(answers)).toEqual({ 200: 1, 412: CLIENTS - 1 })
    const winner = answers.find(({ status }) => status === 200)
    expect(etagOf(await request('GET', path))).toBe(winner === undefined ? '' : etagOf(winner))
  })

  it('change different things of one object without an ETag, and each change is kept', async () => {
    const paths = Array.from({ length: CLIENTS }, (_, client) => `shared-${client}`)
    const created = await atOnce((client) => request('POST', '/shared/attributes', { name: paths[client], value: 'x' }))
    expect(tally(created)).toEqual({ 200: CLIENTS })
    const changed = await atOnce((client) =>
      client % 2 === 0
        ? request('PATCH', '/shared', { sourceOwner: `owner ${client}` })
        : request('PATCH', `/shared/attributes/shared-${client}`, { value: `y${client}` }),
    )
    expect(tally(changed)).toEqual({ 200: CLIENTS })
    const { attributes, sourceOwner } = (await request('GET', '/shared')).body.data
    expect(String(sourceOwner)).toMatch(/^owner \d*[02468]$/)
    const values = new Map((attributes as { name: string; value: string }[]).map(({ name, value }) => [name, value]))
    for (const [client, name] of paths.entries()) expect(values.get(name)).toBe(client % 2 === 0 ? 'x' : `y${client}`)
  })

  it('count in an attribute, and the count is that of their successes', async () => {
    const path = '/shared/attributes/counter'
    await request('POST', '/shared/attributes', { name: 'counter', value: '0' })
    const successes = await atOnce(async () => {
      let written = 0
      for (let attempt = 0; attempt < 6; attempt += 1) {
        const read = await request('GET', path)
        const value = String(Number(read.body.data.value) + 1)
        const { status } = await request('PATCH', path, { value }, etagOf(read))
        expect([200, 412]).toContain(status)
        if (status === 200) written += 1
      }
      return written
    })
    const sum = successes.reduce((total, each) => total + each, 0)
    expect(sum).toBeGreaterThan(5)
    expect((await request('GET', path)).body.data.value).toBe(String(sum))
  })

  it.each(KINDS.toReversed())('delete one %s with one ETag, and one of them succeeds', async (_name, kind) => {
    const path = `${kind.collection}/${kind.id}`
    const etag = etagOf(await request('GET', path))
    const { 204: done, 404: gone = 0, ...others } = tally(await atOnce(() => request('DELETE', path, undefined, etag)))
    expect({ done, gone, others }).toEqual({ done: 1, gone: CLIENTS - 1, others: {} })
    expect((await request('GET', path)).status).toBe(404)
  })
})

describe(`a storm of ${CLIENTS} clients`, { timeout: 120_000 }, () => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const why = `with the seed ${seed}`
  const storm = new Storm(request)

  it('meets no error of the service', async () => {
    await running.settled([0, 1])
    for (const [index, id] of STAYING.entries()) await storm.act('create', id, { body: newRegistration(id, -index) })
    const acts = fc.sample(anyAct, { numRuns: CLIENTS * STEPS, seed })
    await atOnce(async (client) => {
      for (const [step, each] of acts.slice(client * STEPS, (client + 1) * STEPS).entries()) {
        await each(storm, client * STEPS + step + 1)
      }
    })
    for (const effect of ['create', 'change', 'delete'] as const) {
      expect(storm.history.filter((write) => write.effect === effect).length, why).toBeGreaterThan(10)
    }
  })

  it('leaves what its answers said, and nothing else', async () => {
    const problems: string[] = []
    for (const path of PATHS) {
      const { status, body } = await request('GET', `/${path}`)
      problems.push(...contradictions(path, status === 404 ? null : contentOf(path, body.data), storm.history))
    }
    expect(problems, why).toEqual([])
  })

  it('leaves brokers that hold exactly what the store says', async () => {
    // A queue stays as it was while no credential lives, so each registration gets one that does.
    for (const id of [...STAYING, ...PASSING]) {
      await request('POST', `/${id}/credentials`, { name: 'last', secret: { consumerKey: `last-key-of-${id}` } })
    }
    await request('POST', `/${STAYING[0]}/accessRequests`, {
      ...{ accessRequestId: 'the-last-request', eventApiProductId: 'orders', planId: 'gold' },
    })
    await running.settled([0, 1])
    const { body } = await call<{ data: readonly Shown[] }>('GET', `${REGISTRATIONS}?pageSize=100`)
    const active = body.data.filter(({ accessRequests }) => accessRequests.some(isCounted))
    const wanted = {
      passwords: Object.fromEntries(
        active.flatMap(({ credentials }) =>
          credentials.map(({ secret }) => [secret.consumerKey, secret.consumerSecret]),
        ),
      ),
      aclProfiles: active.map(({ registrationId }) => registrationId).sort(),
      queues: active
        .flatMap(({ accessRequests }) => accessRequests.filter(isCounted))
        .map(({ eventApiProductResourceInformation }) => (eventApiProductResourceInformation as { name: string }).name)
        .sort(),
    }
    expect(wanted.passwords).toHaveProperty(`last-key-of-${STAYING[0]}`)
    for (const { name, state } of running.mesh.sandbox.brokers) {
      const ours = (names: readonly string[]) => names.filter((each) => !/^#|^default$/.test(each))
      const found = () => ({
        passwords: Object.fromEntries(ours(state.clientUsernames.names()).map((key) => [key, state.passwordOf(key)])),
        aclProfiles: ours(state.aclProfiles.names()),
        queues: ours(state.queues.names()),
      })
      // What was withdrawn is gone a second later.
      const same = () => (JSON.stringify(sorted(found())) === JSON.stringify(sorted(wanted)) ? true : null)
      await until(`${name} holds what the store says`, same).catch(() => expect(found(), why).toEqual(wanted))
    }
    await running.stop()
    for (const index of [0, 1]) {
      expect(await running.mesh.plans(index), why).toEqual([])
      const writes = running.mesh.writes()
      expect(await running.mesh.sweep(index)).toMatchObject({ changed: 0, failed: 0 })
      expect(running.mesh.writes()).toBe(writes)
    }
  })
})

interface Shown {
  readonly registrationId: string
  readonly accessRequests: readonly Record<string, unknown>[]
  readonly credentials: readonly {
    readonly secret: { readonly consumerKey: string; readonly consumerSecret: string }
  }[]
}

const sorted = ({ passwords, ...rest }: { readonly passwords: Readonly<Record<string, unknown>> }) => ({
  ...rest,
  passwords: Object.entries(passwords).sort(([one], [other]) => (one < other ? -1 : 1)),
})
