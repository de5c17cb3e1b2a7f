import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { type AccountId, accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import type { Plan } from '../../src/reconcile/plan.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { laggingPairs } from '../../src/store/pairs.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { noEngine, type TestApi, withApi } from '../helpers/http.ts'
import { broker, portalFile, registration, suppliedCredential } from './import-fixtures.ts'

const BASE = '/api/v2/operations'
const planOf = (account: AccountId, id: string): Plan => ({
  accountId: account,
  brokerId: brokerId('broker-1'),
  registrationId: registrationId(id),
  generation: 1,
  steps: [
    {
      action: { type: 'delete', kind: 'queue', name: 'q', reason: 'no-longer-wanted' },
      disruptive: true,
      decision: 'held',
      because: 'The action drops live clients and waits for an operator.',
    },
  ],
  drift: [],
  conflicts: [],
  refused: null,
  waitsUntilMs: null,
  notes: [],
})

let api: TestApi
let other: { readonly token: string; readonly accountId: AccountId }

beforeAll(async () => {
  api = await withApi({
    dependencies: {
      engine: {
        ...noEngine,
        planPair: async (pair) => planOf(pair.accountId, pair.registrationId),
        async *planBroker(key) {
          if (key.brokerId === 'broker-2') {
            throw new KeymeshError({ code: 'UNREACHABLE', fate: 'wait', message: 'The broker does not answer.' })
          }
          yield planOf(key.accountId, 'app-1')
          yield planOf(key.accountId, 'app-2')
        },
      },
    },
  })
  const user = await api.addUser({ name: 'eve', account: 'other' })
  other = { token: user.apiToken, accountId: accountId('other') }
})
afterAll(() => api[Symbol.asyncDispose]())

/** `default` has two brokers and two registrations on `broker-1`; `other` has the same names on its own brokers. */
beforeEach(async () => {
  await sql`truncate environments, brokers, application_domains, event_apis, products, registrations, runs, drift, pauses,
    adoptions, ledger, pairs, broker_status cascade`.execute(api.db)
  for (const [account, host] of [
    [api.accountId, 'default'],
    [other.accountId, 'other'],
  ] as const) {
    const { db, sealer } = api.dependencies
    const brokers = ['broker-1', 'broker-2'].map((id) => {
      const declared = broker(id)
      return {
        ...declared,
        management: declared.management && { ...declared.management, url: `https://${host}-${id}:1943` },
      }
    })
    const registrations = ['app-1', 'app-2'].map((id) =>
      registration(id, { credentials: [suppliedCredential('main', `key-of-${id}`, `secret-of-${id}`)] }),
    )
    const file = portalFile({ brokers, registrations })
    await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, account, file)
  }
  api.enqueued.length = 0
})

const addRun = (id: string, account: AccountId, at: string) =>
  sql`
  insert into runs (id, account_id, broker_id, registration_id, kind, trigger, outcome, steps, started_at, finished_at)
  values (${id}, ${account}, 'broker-1', 'app-1', 'registration', 'sweep', 'in-sync', 2, ${at}, ${at})`.execute(api.db)
const addDrift = (account: AccountId, name: string, run: string, repaired: string | null = null) =>
  sql`
  insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
    run_id, detected_at, last_seen_at, repaired_at)
  values (${account}, 'broker-1', 'app-1', 'queue', ${name}, 'changed', 'changed-on-broker', '{"owner":"x"}', '{"owner":"y"}',
    'reported', ${run}, now(), now(), ${repaired})`.execute(api.db)
const recorded = async (query: Promise<{ rows: unknown[] }>): Promise<unknown[]> => (await query).rows

describe('looking', () => {
  it('shows how each broker stands, page by page', async () => {
    const first = await api.call('GET', `${BASE}/status?pageSize=1`)
    expect(first).toMatchObject({
      status: 200,
      body: {
        data: [{ brokerId: 'broker-1', paused: false, registrations: { total: 2, lagging: 2, inSync: 0 } }],
        meta: { pagination: { count: 2, nextPage: 2, totalPages: 2 } },
      },
    })
    const second = await api.call('GET', `${BASE}/status?pageSize=1&pageNumber=2`)
    expect(second.body).toMatchObject({ data: [{ brokerId: 'broker-2' }], meta: { pagination: { nextPage: null } } })
    expect(await api.call('GET', `${BASE}/brokers/broker-1/status`)).toMatchObject({
      status: 200,
      body: { data: { brokerId: 'broker-1' } },
    })
  })

  it('shows how registrations stand on their brokers', async () => {
    await sql`update pairs set state = 'error', reason = 'no', due_at = 'infinity' where registration_id = 'app-2'`.execute(
      api.db,
    )
    expect(await api.call('GET', `${BASE}/registrations/status?state=error`)).toMatchObject({
      status: 200,
      body: {
        data: [
          { registrationId: 'app-2', brokerId: 'broker-1', state: 'error', reason: 'no', dueAtMs: null, paused: false },
        ],
        meta: { pagination: { count: 1 } },
      },
    })
  })

  it('shows runs, newest first, and one with its differences', async () => {
    await addRun('run-1', api.accountId, '2030-01-01T00:00:00Z')
    await addRun('run-2', api.accountId, '2030-01-02T00:00:00Z')
    await addRun('run-3', other.accountId, '2030-01-03T00:00:00Z')
    await addDrift(api.accountId, 'q1', 'run-2')
    const list = await api.call<{ data: { id: string }[] }>('GET', `${BASE}/runs?registrationId=app-1&trigger=sweep`)
    expect(list.status).toBe(200)
    expect(list.body.data.map(({ id }) => id)).toEqual(['run-2', 'run-1'])
    expect(await api.call('GET', `${BASE}/runs/run-2`)).toMatchObject({
      status: 200,
      body: { data: { id: 'run-2', steps: 2, differences: [{ objectName: 'q1', after: { owner: 'y' } }] } },
    })
    expect((await api.call('GET', `${BASE}/runs?brokerId=broker-2`)).body).toMatchObject({ data: [] })
    expect((await api.call('GET', `${BASE}/runs/run-3`)).status).toBe(404)
  })

  it('filters and pages drift', async () => {
    await addDrift(api.accountId, 'q1', 'run-1', '2030-01-01T00:00:00Z')
    await addDrift(api.accountId, 'q2', 'run-1')
    await addDrift(api.accountId, 'q3', 'run-2')
    await addDrift(other.accountId, 'q4', 'run-1')
    const page = await api.call<{ data: { id: number; objectName: string }[] }>('GET', `${BASE}/drift?pageSize=2`)
    expect(page.body).toMatchObject({
      data: [{ objectName: 'q3' }, { objectName: 'q2' }],
      meta: { pagination: { count: 3, nextPage: 2 } },
    })
    expect((await api.call('GET', `${BASE}/drift?open=true&runId=run-1`)).body).toMatchObject({
      data: [{ objectName: 'q2' }],
      meta: { pagination: { count: 1 } },
    })
    const id = page.body.data[0]?.id
    expect(await api.call('GET', `${BASE}/drift/${id}`)).toMatchObject({
      status: 200,
      body: { data: { objectName: 'q3' } },
    })
    expect((await api.call('GET', `${BASE}/drift/${id}`, { token: other.token })).status).toBe(404)
  })

  it('plans, bounded, and tells of brokers that cannot be read beside the plans of the others', async () => {
    const all = await api.call('GET', `${BASE}/plan`)
    expect(all).toMatchObject({
      status: 200,
      body: {
        data: [
          { registrationId: 'app-1', steps: [{ decision: 'held', disruptive: true }] },
          { registrationId: 'app-2' },
        ],
        meta: { complete: false, failures: [{ brokerId: 'broker-2', code: 'UNREACHABLE' }] },
      },
    })
    const bounded = await api.call<{ data: unknown[] }>('GET', `${BASE}/plan?brokerId=broker-1&limit=1`)
    expect(bounded.body).toMatchObject({ data: [{ registrationId: 'app-1' }], meta: { complete: false, failures: [] } })
    const one = await api.call<{ data: { lines: string[] }[] }>('GET', `${BASE}/plan?registrationId=app-2`)
    expect(one.body).toMatchObject({ data: [{ registrationId: 'app-2' }], meta: { complete: true } })
    expect(one.body.data[0]?.lines[0]).toBe('registration app-2 on broker broker-1, generation 1')
  })

  it('explains a registration', async () => {
    await sql`
      update pairs set state = 'conflict', reason = 'taken.', needs_person = true, attempts = 0
      where registration_id = 'app-2'`.execute(api.db)
    await sql`
      update access_requests set state = 'ERROR', reason = 'Broker broker-1: taken.'
      where registration_id = 'app-2'`.execute(api.db)
    expect(await api.call('GET', `${BASE}/registrations/app-2/explanation`)).toMatchObject({
      status: 200,
      body: {
        data: {
          id: 'app-2',
          accessRequests: [{ state: 'ERROR', explanation: 'Broker broker-1: taken.' }],
          brokers: [{ brokerId: 'broker-1', state: 'conflict', reason: 'taken.', needsPerson: true }],
        },
      },
    })
    expect((await api.call('GET', `${BASE}/registrations/app-1/explanation`)).body).toMatchObject({
      data: { accessRequests: [{ state: 'APPROVED', explanation: expect.stringContaining('LIVE as soon as') }] },
    })
    expect((await api.call('GET', `${BASE}/registrations/nobody/explanation`)).status).toBe(404)
    expect((await api.call('GET', `${BASE}/brokers/broker-1/status`)).body).toMatchObject({
      data: { registrations: { conflict: 1, needPerson: 1 } },
    })
  })

  it('explains products and brokers', async () => {
    expect(await api.call('GET', `${BASE}/products/orders/explanation`)).toMatchObject({
      status: 200,
      body: { data: { id: 'orders', versions: [{ version: '1.0.0', visible: true, brokers: [{ usable: true }] }] } },
    })
    expect((await api.call('GET', `${BASE}/brokers/broker-1/explanation`)).body).toMatchObject({
      data: { usable: true },
    })
  })
})

describe('asking for runs', () => {
  it('sweeps all brokers, or one', async () => {
    expect(await api.call('POST', `${BASE}/reconcile`)).toMatchObject({
      status: 202,
      body: { data: { sweeps: ['broker-1', 'broker-2'], count: 2, queued: true } },
    })
    expect(api.enqueued).toMatchObject([
      { kind: 'sweep', what: { trigger: 'operator', broker: { brokerId: 'broker-1' } } },
      { kind: 'sweep', what: { broker: { brokerId: 'broker-2' } } },
    ])
    api.enqueued.length = 0
    const one = await api.call('POST', `${BASE}/reconcile`, { body: { brokerId: 'broker-2' } })
    expect(one.body).toMatchObject({ data: { sweeps: ['broker-2'] } })
    expect(api.enqueued).toHaveLength(1)
  })

  it('reconciles a registration on its brokers, and makes it due in case the job is lost', async () => {
    await sql`update pairs set reached_generation = generation, due_at = 'infinity'`.execute(api.db)
    const answer = await api.call('POST', `${BASE}/reconcile`, { body: { registrationId: 'app-1' } })
    expect(answer).toMatchObject({
      status: 202,
      body: { data: { registrations: [{ registrationId: 'app-1', brokerId: 'broker-1' }], count: 1 } },
    })
    expect(api.enqueued).toMatchObject([{ kind: 'pairs', what: { trigger: 'operator' } }])
    expect((await laggingPairs(api.db, 10)).map((pair) => pair.registrationId)).toEqual(['app-1'])
  })

  it('lets one run drop live clients, for an hour', async () => {
    await api.call('POST', `${BASE}/reconcile`, { body: { registrationId: 'app-1', allowDisruptive: true } })
    const rows = await recorded(
      sql`select account_id as account from pairs where disruptive_allowed_until between now() + interval '50 minutes'
        and now() + interval '70 minutes'`.execute(api.db),
    )
    expect(rows).toEqual([{ account: 'default' }])
  })

  it('writes passwords again', async () => {
    await sql`insert into ledger (account_id, broker_id, kind, name, registration_id, origin)
      select account_id, 'broker-1', 'clientUsername', 'key-of-app-1', 'app-1', 'created' from accounts
      join brokers on account_id = accounts.id and brokers.id = 'broker-1'`.execute(api.db)
    const answer = await api.call('POST', `${BASE}/reapply`, { body: { consumerKey: 'key-of-app-1' } })
    expect(answer).toMatchObject({ status: 202, body: { data: { registrations: [{ registrationId: 'app-1' }] } } })
    const due = sql`select account_id as account from ledger where password_due`.execute(api.db)
    expect(await recorded(due)).toEqual([{ account: 'default' }])
    expect((await api.call('POST', `${BASE}/reapply`, { body: { consumerKey: 'unknown-key' } })).status).toBe(404)
    expect(await api.call('POST', `${BASE}/reapply`, { body: {} })).toMatchObject({
      status: 400,
      body: { validationDetails: { registrationId: expect.any(Array) } },
    })
  })

  it('confirms refused withdrawals of one broker', async () => {
    await sql`update pairs set state = 'refused' where registration_id = 'app-2'`.execute(api.db)
    const answer = await api.call('POST', `${BASE}/brokers/broker-1/confirmWithdrawals`)
    expect(answer).toMatchObject({
      status: 202,
      body: { data: { registrations: [{ registrationId: 'app-2' }], count: 1 } },
    })
    const confirmed = sql`select account_id as account, registration_id as id from pairs where withdrawal_confirmed`
    expect(await recorded(confirmed.execute(api.db))).toEqual([{ account: 'default', id: 'app-2' }])
  })

  it('records an adoption with the name of who asked', async () => {
    const body = { kind: 'clientUsername', name: 'legacy' }
    const answer = await api.call('POST', `${BASE}/brokers/broker-1/adoptions`, { body })
    expect(answer).toMatchObject({ status: 201, body: { data: { brokerId: 'broker-1', ...body } } })
    const rows = await recorded(sql`select account_id, kind, name, asked_by from adoptions`.execute(api.db))
    expect(rows).toEqual([{ account_id: 'default', ...body, asked_by: 'admin' }])
  })
})

describe('pausing', () => {
  const lagging = async () => (await laggingPairs(api.db, 10)).map((pair) => `${pair.accountId} ${pair.registrationId}`)

  it.each([
    ['everything', '', ['other app-1', 'other app-2']],
    ['a broker', '/brokers/broker-1', ['other app-1', 'other app-2']],
    ['a registration', '/registrations/app-1', ['default app-2', 'other app-1', 'other app-2']],
  ])('%s hides its pairs from the poll until it is resumed', async (_what, path, left) => {
    expect((await api.call('POST', `${BASE}${path}/pause`)).status).toBe(204)
    expect((await api.call('POST', `${BASE}${path}/pause`)).status).toBe(204)
    expect((await lagging()).toSorted()).toEqual(left)
    const list = await api.call('GET', `${BASE}/pauses`)
    expect(list.body).toMatchObject({ data: [{ scope: expect.any(String) }], meta: { pagination: { count: 1 } } })
    const resumed = await api.call<{ data: { count: number } }>('POST', `${BASE}${path}/resume`)
    expect(resumed.status).toBe(202)
    expect(resumed.body.data.count).toBe(4 - left.length)
    expect(await lagging()).toHaveLength(4)
    expect((await api.call('GET', `${BASE}/pauses`)).body).toMatchObject({ data: [] })
  })

  it('shows in the status of brokers and registrations', async () => {
    await api.call('POST', `${BASE}/pause`)
    expect((await api.call('GET', `${BASE}/brokers/broker-2/status`)).body).toMatchObject({ data: { paused: true } })
    const pairs = await api.call('GET', `${BASE}/registrations/status?registrationId=app-1`)
    expect(pairs.body).toMatchObject({ data: [{ paused: true }] })
    expect((await api.call('GET', `${BASE}/pauses`)).body).toMatchObject({
      data: [{ scope: 'account', id: null, pausedBy: 'admin' }],
    })
    const elsewhere = await api.call('GET', `${BASE}/brokers/broker-2/status`, { token: other.token })
    expect(elsewhere.body).toMatchObject({ data: { paused: false } })
  })
})

describe('policies', () => {
  const path = `${BASE}/brokers/broker-1/policy`
  const generations = () =>
    recorded(sql`select account_id || ' ' || id as id, generation from registrations order by 1`.execute(api.db))

  it('are read, changed in part, and raise the generations of the broker, in this account only', async () => {
    const read = await api.call('GET', path)
    expect(read).toMatchObject({ status: 200, body: { data: { mode: 'full', window: null, maxWithdrawals: 10 } } })
    const changed = await api.call('PATCH', path, {
      body: { disruptive: 'window', window: '23:00-01:30' },
      headers: { 'if-match': String(read.headers.etag) },
    })
    expect(changed).toMatchObject({
      status: 200,
      body: { data: { mode: 'full', disruptive: 'window', window: '23:00-01:30' } },
    })
    expect(changed.headers.etag).not.toBe(read.headers.etag)
    expect(await generations()).toEqual([
      { id: 'default app-1', generation: 2 },
      { id: 'default app-2', generation: 2 },
      { id: 'other app-1', generation: 1 },
      { id: 'other app-2', generation: 1 },
    ])
    expect(api.enqueued).toMatchObject([{ kind: 'pairs', what: { trigger: 'on-demand' } }])
    const stored = await recorded(
      sql`select policy->'window' as window from brokers where account_id = 'default' and id = 'broker-1'`.execute(
        api.db,
      ),
    )
    expect(stored).toEqual([{ window: { fromMinute: 1380, toMinute: 90 } }])
  })

  it('with the same content change nothing', async () => {
    expect((await api.call('PATCH', path, { body: { mode: 'full' } })).status).toBe(200)
    expect(await generations()).toContainEqual({ id: 'default app-1', generation: 1 })
    expect(api.enqueued).toEqual([])
  })

  it.each([
    ['an old ETag', { body: { mode: 'observe-only' }, headers: { 'if-match': '"old"' } }, 412, null],
    ['an unknown mode', { body: { mode: 'brutal' } }, 400, 'mode'],
    ['an unknown field', { body: { speed: 1 } }, 400, 'speed'],
    ['a window policy without a window', { body: { disruptive: 'window' } }, 400, 'window'],
    ['a window of no length', { body: { window: '01:00-01:00' } }, 400, 'window'],
  ])('refuse %s and write nothing', async (_what, options, status, field) => {
    const answer = await api.call<{ validationDetails?: Record<string, unknown> }>('PATCH', path, options)
    expect(answer.status).toBe(status)
    if (field !== null) expect(Object.keys(answer.body.validationDetails ?? {})).toEqual([field])
    expect((await api.call('GET', path)).body).toMatchObject({ data: { mode: 'full', disruptive: 'manual' } })
    expect(await generations()).toContainEqual({ id: 'default app-1', generation: 1 })
  })
})

describe('what is refused', () => {
  it.each([
    ['GET', '/status?speed=1', undefined, 400, 'speed'],
    ['GET', '/runs?kind=odd', undefined, 400, 'kind'],
    ['GET', '/drift?open=perhaps', undefined, 400, 'open'],
    ['GET', '/drift/abc', undefined, 400, 'driftId'],
    ['GET', '/plan?limit=100000', undefined, 400, 'limit'],
    ['POST', '/reconcile', { everything: true }, 400, 'everything'],
    ['POST', '/brokers/broker-1/adoptions', { kind: 'vpn', name: 'x' }, 400, 'kind'],
    ['GET', '/plan?brokerId=unknown', undefined, 404, null],
    ['POST', '/reconcile', { brokerId: 'unknown' }, 404, null],
    ['POST', '/reconcile', { registrationId: 'unknown' }, 404, null],
    ['POST', '/brokers/unknown/pause', undefined, 404, null],
    ['POST', '/registrations/unknown/pause', undefined, 404, null],
    ['GET', '/brokers/unknown/policy', undefined, 404, null],
    ['PATCH', '/brokers/unknown/policy', {}, 404, null],
    ['GET', '/brokers/unknown/status', undefined, 404, null],
    ['POST', '/brokers/unknown/adoptions', { kind: 'queue', name: 'x' }, 404, null],
  ] as const)('%s %s with %o', async (method, path, body, status, field) => {
    const answer = await api.call<{ validationDetails?: Record<string, unknown> }>(method, `${BASE}${path}`, { body })
    expect(answer.status).toBe(status)
    if (field !== null) expect(Object.keys(answer.body.validationDetails ?? {})).toEqual([field])
    expect(api.enqueued).toEqual([])
  })

  it.each([
    ['GET', '/status', 'services:get'],
    ['GET', '/runs', 'apim_event_api_product:*:*'],
    ['POST', '/reconcile', 'services:put'],
    ['POST', '/pause', 'services:put'],
    ['PATCH', '/brokers/broker-1/policy', 'services:put'],
    ['POST', '/brokers/broker-1/adoptions', 'services:post'],
  ] as const)('%s %s without %s', async (method, path, missing) => {
    const user = await api.addUser({ name: `without-${method}-${path}`.replaceAll('/', '-') })
    const token = await api.apiToken(
      user.id,
      api.accountId,
      PERMISSIONS.filter((each) => each !== missing),
    )
    const answer = await api.call<{ message: string }>(method, `${BASE}${path}`, {
      token,
      body: method === 'GET' ? undefined : {},
    })
    expect(answer.status).toBe(403)
    expect(answer.body.message).toContain(missing)
    expect(api.enqueued).toEqual([])
  })

  it('another account sees and reaches only its own', async () => {
    await sql`delete from pairs where account_id = 'other'`.execute(api.db)
    await sql`delete from registrations where account_id = 'other'`.execute(api.db)
    await addRun('run-1', api.accountId, '2030-01-01T00:00:00Z')
    const call = (method: 'GET' | 'POST', path: string, body?: object) =>
      api.call(method, `${BASE}${path}`, { token: other.token, body })
    expect((await call('GET', '/runs')).body).toMatchObject({ data: [] })
    expect((await call('GET', '/registrations/status')).body).toMatchObject({ data: [] })
    expect((await call('POST', '/reconcile', { registrationId: 'app-1' })).status).toBe(404)
    expect((await call('POST', '/registrations/app-1/pause')).status).toBe(404)
    expect((await call('POST', '/brokers/broker-1/confirmWithdrawals')).body).toMatchObject({ data: { count: 0 } })
    expect((await call('POST', '/reapply', { registrationId: 'app-1' })).status).toBe(404)
  })
})
