import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Protocol } from '../../src/domain/catalogue.ts'
import { type AccountId, accountId, brokerId, consumerKey, registrationId } from '../../src/domain/ids.ts'
import { type NegativeControl, notVerified, type Verdict } from '../../src/domain/verdict.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { recordControl } from '../../src/store/login-controls.ts'
import { recordLogins } from '../../src/store/login-verdicts.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { broker, portalFile, registration, suppliedCredential } from './import-fixtures.ts'

const BASE = '/api/v2/operations'
const AT_MS = Date.UTC(2030, 0, 1)
const ACCEPTED: Verdict = { outcome: 'accepted' }
const REJECTED: Verdict = { outcome: 'rejected', detail: 'wrong password' }

let api: TestApi
let other: { readonly token: string; readonly accountId: AccountId }

beforeAll(async () => {
  api = await withApi()
  const user = await api.addUser({ name: 'eve', account: 'other' })
  other = { token: user.apiToken, accountId: accountId('other') }
})
afterAll(() => api[Symbol.asyncDispose]())

const MESSAGING = {
  host: 'broker.example',
  protocols: [
    { protocol: 'smf', port: 1 },
    { protocol: 'mqtt', port: 2 },
  ],
} as const

/** `app-1` and `app-2` of both accounts, on `broker-1`, which exposes SMF and MQTT. */
async function importInto(account: AccountId, messaging: Partial<typeof MESSAGING> & object = MESSAGING) {
  const { db, sealer } = api.dependencies
  const brokers = ['broker-1', 'broker-2'].map((id) => {
    const declared = broker(id)
    const url = `https://${account}-${id}:1943`
    return {
      ...declared,
      management: declared.management && { ...declared.management, url },
      messaging: { ...MESSAGING, ...messaging },
    }
  })
  const registrations = ['app-1', 'app-2'].map((id) =>
    registration(id, { credentials: [suppliedCredential('main', `key-of-${id}`, `secret-of-${id}`)] }),
  )
  const file = portalFile({ brokers, registrations })
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, account, file)
}

beforeEach(async () => {
  await sql`truncate environments, brokers, application_domains, event_apis, products, registrations, audit cascade`.execute(
    api.db,
  )
  await importInto(api.accountId)
  await importInto(other.accountId)
  api.enqueued.length = 0
})

const record = (app: string, protocol: Protocol, verdict: Verdict, account = api.accountId, version = 1) =>
  recordLogins(api.db, [
    {
      pair: { accountId: account, brokerId: brokerId('broker-1'), registrationId: registrationId(app) },
      login: {
        consumerKey: consumerKey(`key-of-${app}`),
        protocol,
        credentialVersion: version,
        verdict,
        checkedAtMs: AT_MS,
      },
    },
  ])
const tryWrong = (protocol: Protocol, outcome: NegativeControl) =>
  recordControl(
    api.db,
    { accountId: api.accountId, brokerId: brokerId('broker-1') },
    { protocol, outcome, detail: 'what it said', checkedAtMs: AT_MS },
  )

interface Logins {
  readonly data: readonly { readonly registrationId: string; readonly protocol: string; readonly outcome: string }[]
}
async function list(query = ''): Promise<readonly string[]> {
  const { body } = await api.call<Logins>('GET', `${BASE}/logins${query}`)
  return body.data.map((each) => `${each.registrationId} ${each.protocol} ${each.outcome}`)
}
const loginSums = async () =>
  (await api.call<{ data: { logins: unknown } }>('GET', `${BASE}/brokers/broker-1/status`)).body.data.logins

describe('the last logins', () => {
  it('are listed with why, when, and what a wrong password came to', async () => {
    await record('app-1', 'mqtt', ACCEPTED)
    await record('app-2', 'smf', notVerified('dns', 'no such host'))
    await tryWrong('mqtt', 'refused')
    const login = { brokerId: 'broker-1', checkedAtMs: AT_MS }
    expect(await api.call('GET', `${BASE}/logins`)).toMatchObject({
      status: 200,
      body: {
        data: [
          {
            ...login,
            registrationId: 'app-1',
            consumerKey: 'key-of-app-1',
            protocol: 'mqtt',
            outcome: 'accepted',
            reason: null,
            detail: '',
            control: { outcome: 'refused', detail: 'what it said', checkedAtMs: AT_MS },
          },
          {
            ...login,
            registrationId: 'app-2',
            outcome: 'not-verified',
            reason: 'dns',
            detail: 'no such host',
            control: null,
          },
        ],
        meta: { pagination: { count: 2 } },
      },
    })
  })

  it.each([
    ['', ['app-1 mqtt accepted', 'app-1 smf rejected', 'app-2 mqtt accepted']],
    ['?registrationId=app-1', ['app-1 mqtt accepted', 'app-1 smf rejected']],
    ['?protocol=smf', ['app-1 smf rejected']],
    ['?outcome=accepted', ['app-1 mqtt accepted', 'app-2 mqtt accepted']],
    ['?brokerId=broker-1&outcome=rejected', ['app-1 smf rejected']],
    ['?brokerId=broker-2', []],
    ['?pageSize=2&pageNumber=2', ['app-2 mqtt accepted']],
  ])('are filtered and paged: %s', async (query, expected) => {
    await record('app-1', 'mqtt', ACCEPTED)
    await record('app-1', 'smf', REJECTED)
    await record('app-2', 'mqtt', { outcome: 'accepted' })
    expect(await list(query)).toEqual(expected)
  })

  it.each([
    ['of an older version of the secret', sql`update credentials set secret_version = 2`],
    ['of a retired credential', sql`update credentials set retired_at = now()`],
    ['of a broker that the registration leaves', sql`update pairs set wanted = false`],
    [
      'over a protocol that is no longer exposed',
      sql`update brokers set messaging = jsonb_set(messaging, '{protocols}', '[{"protocol":"smf","port":1}]')`,
    ],
    [
      'over a protocol whose logins are off',
      sql`update brokers set messaging = messaging || '{"logins":{"off":["mqtt"]}}'`,
    ],
    ['on a broker whose logins are off', sql`update brokers set messaging = messaging || '{"logins":{"off":"all"}}'`],
  ])('say nothing %s', async (_, change) => {
    await record('app-1', 'mqtt', REJECTED)
    await tryWrong('mqtt', 'accepts-anything')
    expect(await list()).toEqual(['app-1 mqtt rejected'])
    await change.execute(api.db)
    expect(await list()).toEqual([])
    expect(await loginSums()).toMatchObject({ accepted: 0, rejected: 0, notVerified: 0 })
  })

  it('add up for each broker, with a warning where anything is accepted', async () => {
    expect(await loginSums()).toEqual({ accepted: 0, rejected: 0, notVerified: 0, acceptsAnything: [] })
    await record('app-1', 'smf', { outcome: 'denied', detail: 'the topic is not allowed' })
    await record('app-1', 'mqtt', ACCEPTED)
    await record('app-2', 'smf', { outcome: 'disabled', detail: 'shut down' })
    await record('app-2', 'mqtt', notVerified('timeout', 'no answer'))
    await tryWrong('mqtt', 'accepts-anything')
    await tryWrong('smf', 'refused')
    expect(await loginSums()).toEqual({ accepted: 2, rejected: 1, notVerified: 1, acceptsAnything: ['mqtt'] })
  })

  it('are told of a registration on each of its brokers', async () => {
    await record('app-1', 'mqtt', REJECTED)
    const answer = await api.call('GET', `${BASE}/registrations/app-1/explanation`)
    expect(answer).toMatchObject({
      status: 200,
      body: {
        data: {
          brokers: [
            { brokerId: 'broker-1', logins: [{ protocol: 'mqtt', outcome: 'rejected', detail: 'wrong password' }] },
          ],
        },
      },
    })
    expect((await api.call('GET', `${BASE}/registrations/app-2/explanation`)).body).toMatchObject({
      data: { brokers: [{ logins: [] }] },
    })
  })

  it('of another account are not seen', async () => {
    await record('app-1', 'mqtt', REJECTED, other.accountId)
    expect(await list()).toEqual([])
    expect(await loginSums()).toMatchObject({ rejected: 0 })
    const { body } = await api.call<Logins>('GET', `${BASE}/logins`, { token: other.token })
    expect(body.data).toHaveLength(1)
  })

  it('are refused for filters that nothing can match', async () => {
    expect((await api.call('GET', `${BASE}/logins?protocol=gopher`)).status).toBe(400)
    expect((await api.call('GET', `${BASE}/logins?outcome=maybe`)).status).toBe(400)
  })
})

describe('logins that are asked for', () => {
  const verify = (body?: object, token = api.token) =>
    api.call('POST', `${BASE}/verify`, { token, ...(body && { body }) })
  const asked = () => api.enqueued.map(({ kind, what }) => [kind, what])

  it.each<[string, object | undefined, readonly object[]]>([
    ['everywhere', undefined, [{ brokerId: 'broker-1' }, { brokerId: 'broker-2' }]],
    ['on one broker', { brokerId: 'broker-2' }, [{ brokerId: 'broker-2' }]],
    ['over one protocol', { protocol: 'mqtt', brokerId: 'broker-1' }, [{ brokerId: 'broker-1', protocol: 'mqtt' }]],
    ['of one registration', { registrationId: 'app-1' }, [{ brokerId: 'broker-1', registrationId: 'app-1' }]],
    ['of a registration that is not on the broker', { registrationId: 'app-1', brokerId: 'broker-2' }, []],
  ])('%s are given to the workers', async (_, body, expected) => {
    const brokers = expected.map((each) => ('brokerId' in each ? each.brokerId : ''))
    expect(await verify(body)).toMatchObject({ status: 202, body: { data: { brokers, queued: true } } })
    expect(asked()).toEqual(
      expected.map(({ brokerId: id, ...what }: { brokerId?: string }) => [
        'verify',
        { broker: { accountId: 'default', brokerId: id }, ...what },
      ]),
    )
  })

  it.each([
    [{ brokerId: 'nowhere' }, 404],
    [{ registrationId: 'nobody' }, 404],
    [{ registrationId: 'app-1', brokerId: 'nowhere' }, 404],
    [{ protocol: 'gopher' }, 400],
    [{ everything: true }, 400],
  ])('%j are refused with %i', async (body, status) => {
    expect((await verify(body)).status).toBe(status)
    expect(api.enqueued).toEqual([])
  })

  it('need the permission to change things, and are in the audit trail', async () => {
    const reader = await api.addUser({
      name: 'reader',
      permissions: ['apim_event_api_product:*:*', 'messaging_service:read'],
    })
    expect((await verify(undefined, reader.apiToken)).status).toBe(403)
    await verify({ brokerId: 'broker-1', protocol: 'mqtt' })
    const { rows } = await sql<{
      action: string
      subject: string
    }>`select action, subject from audit where action = 'verify' and subject is not null`.execute(api.db)
    expect(rows).toContainEqual({ action: 'verify', subject: 'broker-1 on mqtt' })
  })

  it('are refused where logins are switched off', async () => {
    await using quiet = await withApi({ env: { KEYMESH_LOGINS: 'false' } })
    expect(await quiet.call('POST', `${BASE}/verify`)).toMatchObject({ status: 409 })
    expect(quiet.enqueued).toEqual([])
  })
})
