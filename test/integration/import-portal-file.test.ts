import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InvalidInputError, KeymeshError } from '../../src/domain/errors.ts'
import { accessRequestId, accountId, brokerId, consumerKey, eventApiId, productId } from '../../src/domain/ids.ts'
import { Secret } from '../../src/domain/secret.ts'
import { createAccessRequest } from '../../src/store/access-requests.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { type OpenDatabase, openDatabase } from '../../src/store/database.ts'
import { retireExpired } from '../../src/store/generations.ts'
import type { ImportChange } from '../../src/store/import-changes.ts'
import { type ImportDependencies, importPortalFile } from '../../src/store/import-portal-file.ts'
import { writeAccessRequests } from '../../src/store/import-write-registrations.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { createRegistration } from '../../src/store/registrations.ts'
import { credentialPlace } from '../../src/store/sealer-port.ts'
import { withDatabase } from '../helpers/database.ts'
import {
  accessRequest,
  broker,
  credential,
  eventApi,
  plan,
  portalFile,
  product,
  productVersion,
  registration,
  suppliedCredential,
  testSealer,
} from './import-fixtures.ts'

const NOW_MS = Date.parse('2026-03-01T00:00:00Z')
const DAY_MS = 86_400_000

const database = withDatabase()
let open: OpenDatabase
let importing: ImportDependencies
const sealer = testSealer()

beforeAll(() => {
  open = openDatabase({
    connectionString: database().connectionString,
    maxConnections: 4,
    onIdleError: () => undefined,
  })
  importing = { db: open.db, sealer, random: cryptoRandom, nowMs: Date.now }
})
afterAll(() => open.close())

/** Each test has accounts, and so message VPNs, of its own. */
let accounts = 0
async function newAccount(): Promise<string> {
  accounts += 1
  await open.db.updateTable('brokers').set({ management_address: null }).execute()
  return await ensureAccount(open.db, `account-${accounts}`)
}

async function dump(accountId: string) {
  const tables = [
    'environments',
    'event_meshes',
    'brokers',
    'application_domains',
    'event_apis',
    'products',
    'product_versions',
    'product_version_event_apis',
    'product_version_brokers',
    'plans',
    'registrations',
    'access_requests',
    'credentials',
    'pairs',
  ] as const
  const rows: Record<string, unknown> = {}
  for (const table of tables) {
    const found = await sql<{ row: string }>`select t::text as row from ${sql.table(table)} t
      where account_id = ${accountId} order by 1`.execute(open.db)
    rows[table] = found.rows.map(({ row }) => row)
  }
  return rows
}

async function generations(accountId: string): Promise<Record<string, number>> {
  const rows = await open.db
    .selectFrom('registrations')
    .select(['id', 'generation'])
    .where('account_id', '=', accountId)
    .orderBy('id')
    .execute()
  return Object.fromEntries(rows.map(({ id, generation }) => [id, generation]))
}

async function pairs(accountId: string) {
  const rows = await open.db
    .selectFrom('pairs')
    .select(['registration_id', 'broker_id', 'wanted', 'generation'])
    .where('account_id', '=', accountId)
    .orderBy('registration_id')
    .orderBy('broker_id')
    .execute()
  return rows.map((row) => [row.registration_id, row.broker_id, row.wanted, row.generation])
}

async function credentials(accountId: string) {
  const rows = await open.db
    .selectFrom('credentials')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('name')
    .orderBy('issued_at')
    .orderBy('secret_version')
    .execute()
  return await Promise.all(
    rows.map(async (row) => ({
      name: row.name,
      key: row.consumer_key,
      secret: (await sealer.open(row.secret, credentialPlace(accountId, row.id, row.secret_version))).reveal(),
      version: row.secret_version,
      retired: row.retired_at !== null,
    })),
  )
}

async function requests(accountId: string) {
  const rows = await open.db
    .selectFrom('access_requests')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('registration_id')
    .orderBy('id')
    .execute()
  return rows.map((row) => ({ id: row.id, version: row.product_version, state: row.state, approved: row.approved_at }))
}

async function problemsOf(promise: Promise<unknown>): Promise<readonly string[]> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof InvalidInputError)) throw new Error(`no problems, but ${String(error)}`)
  return error.problems.map(({ path, message }) => `${path}: ${message}`)
}

describe('an import', () => {
  it('writes everything once: the second time there is nothing to do', async () => {
    const account = await newAccount()
    const file = portalFile({
      registrations: [
        registration('app-1', {
          filters: { region: ['eu'] },
          credentials: [credential('made'), suppliedCredential('given', 'my-own-key', 'my-own-secret')],
        }),
      ],
    })
    const first = await importPortalFile(importing, account, file)
    expect(first.changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)).toEqual([
      'create environment prod',
      'create eventMesh mesh',
      'create applicationDomain sales',
      'create broker broker-1',
      'create broker broker-2',
      'create eventApi orders-api@1.0.0',
      'create product orders',
      'create productVersion orders@1.0.0',
      'create registration app-1',
      'create accessRequest app-1/request-1',
      'create credential app-1/made',
      'create credential app-1/given',
    ])
    expect(first.raised).toEqual(['app-1'])
    expect(await generations(account)).toEqual({ 'app-1': 1 })
    expect(await pairs(account)).toEqual([['app-1', 'broker-1', true, 1]])
    const before = await dump(account)

    const second = await importPortalFile(importing, account, file, { prune: true })
    expect(second).toEqual({ changes: [], raised: [] })
    expect(await dump(account)).toEqual(before)
    const [given, made] = await credentials(account)
    expect(given).toEqual({ name: 'given', key: 'my-own-key', secret: 'my-own-secret', version: 1, retired: false })
    expect(made?.key).toMatch(/^[A-Za-z0-9]{24}$/)
    expect(made?.secret).toMatch(/^[A-Za-z0-9]{40}$/)
  })

  it('tells no secret in its changes', async () => {
    const account = await newAccount()
    const file = portalFile({
      registrations: [
        registration('app-1', { credentials: [suppliedCredential('given', 'my-own-key', 'my-own-secret')] }),
      ],
    })
    const { changes } = await importPortalFile(importing, account, file)
    expect(JSON.stringify(changes)).not.toMatch(/my-own-secret|password-of/)
  })

  it('as a dry run says the same and writes nothing', async () => {
    const account = await newAccount()
    const before = await dump(account)
    const file = portalFile({ registrations: [registration('app-1')] })
    const { changes, raised } = await importPortalFile(importing, account, file, { dryRun: true })
    expect(raised).toEqual([])
    expect(await dump(account)).toEqual(before)
    expect((await importPortalFile(importing, account, file)).changes).toEqual(changes)
  })

  it('of the same file into one account at once is done once', async () => {
    const account = await newAccount()
    const file = portalFile({ registrations: [registration('app-1'), registration('app-2')] })
    const results = await Promise.all([1, 2, 3].map(() => importPortalFile(importing, account, file)))
    expect(results.map(({ changes }) => changes.length === 0).toSorted()).toEqual([false, true, true])
    expect(await generations(account)).toEqual({ 'app-1': 1, 'app-2': 1 })
    expect(await credentials(account)).toHaveLength(2)
  })

  it('writes nothing when anything is wrong, and says everything that is', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile())
    const before = await dump(account)
    const unusable = broker('broker-3', { messaging: null })
    const file = portalFile({
      environments: [{ id: 'prod', name: 'Renamed' }],
      brokers: [broker('broker-1'), broker('broker-2'), unusable],
      products: [
        product('orders'),
        product('stuck', { versions: [productVersion({ brokers: [brokerId('broker-3')] })] }),
        product('draft', { versions: [productVersion({ state: 'DRAFT' })] }),
      ],
      registrations: [
        registration('app-1', {
          accessRequests: [
            accessRequest({ productId: productId('stuck') }),
            accessRequest({ id: accessRequestId('request-2'), productId: productId('draft') }),
          ],
        }),
      ],
    })
    expect(await problemsOf(importPortalFile(importing, account, file))).toEqual([
      'registrations[0].accessRequests[0]: access request `request-1` of registration `app-1` is new, and version 1.0.0 of product `stuck` has no usable broker: Broker `broker-3`: The messaging settings have no host.',
      'registrations[0].accessRequests[1]: access request `request-2` of registration `app-1` is new, and version 1.0.0 of product `draft` is in state DRAFT: only RELEASED and DEPRECATED ones take requests',
    ])
    expect(await dump(account)).toEqual(before)
  })

  it('refuses text that the database cannot hold', async () => {
    const account = await newAccount()
    const file = portalFile({ eventApis: [eventApi('orders-api', { description: 'a\u0000b' })] })
    expect(await problemsOf(importPortalFile(importing, account, file))).toEqual([
      'eventApis[0]: holds a NUL character or half of a surrogate pair',
    ])
  })
})

describe('generations', () => {
  const twoProducts = (orders: Parameters<typeof productVersion>[0] = {}) =>
    portalFile({
      eventApis: [eventApi('orders-api'), eventApi('stock-api')],
      products: [
        product('orders', { versions: [productVersion(orders)] }),
        product('stock', {
          versions: [
            productVersion({
              eventApis: [{ id: eventApiId('stock-api'), version: '1.0.0' }],
              brokers: [brokerId('broker-2')],
            }),
          ],
        }),
      ],
      registrations: [
        registration('on-orders'),
        registration('on-stock', { accessRequests: [accessRequest({ productId: productId('stock') })] }),
        registration('waiting', { accessRequests: [accessRequest({ state: 'PENDING_APPROVAL' })] }),
      ],
    })

  const cases: readonly [string, (file: ReturnType<typeof twoProducts>) => ReturnType<typeof twoProducts>, string[]][] =
    [
      ['a plan of a product', () => twoProducts({ plans: [plan('gold'), plan('silver')] }), ['on-orders']],
      ['another broker for a product', () => twoProducts({ brokers: [brokerId('broker-2')] }), ['on-orders']],
      ['a retired product version', () => twoProducts({ state: 'RETIRED' }), ['on-orders']],
      ['the description of a product version', () => twoProducts({ description: 'new' }), []],
      [
        'the channels of an Event API',
        (file) => ({ ...file, eventApis: [eventApi('orders-api'), eventApi('stock-api', { channels: [] })] }),
        ['on-stock'],
      ],
      [
        'the policy of a broker',
        (file) => ({
          ...file,
          brokers: [
            broker('broker-1'),
            broker('broker-2', { policy: { ...broker('x').policy, mode: 'observe-only' } }),
          ],
        }),
        ['on-stock'],
      ],
      [
        'the management password of a broker',
        (file) => ({
          ...file,
          brokers: [broker('broker-1', { managementPassword: new Secret('another') }), broker('broker-2')],
        }),
        ['on-orders'],
      ],
      [
        'the name of a broker',
        (file) => ({ ...file, brokers: [broker('broker-1', { name: 'New' }), broker('broker-2')] }),
        [],
      ],
      [
        'the filters of a registration',
        (file) => ({
          ...file,
          registrations: file.registrations.map((each, index) =>
            index === 0 ? { ...each, filters: { region: ['eu'] } } : each,
          ),
        }),
        ['on-orders'],
      ],
      [
        'an approval',
        (file) => ({
          ...file,
          registrations: file.registrations.map((each) =>
            each.id === 'waiting' ? { ...each, accessRequests: [accessRequest({ state: 'APPROVED' })] } : each,
          ),
        }),
        ['waiting'],
      ],
    ]
  it.each(cases)('are raised by %s for those it reaches and nobody else', async (_what, change, raised) => {
    const account = await newAccount()
    const file = twoProducts()
    await importPortalFile(importing, account, file)
    const before = await generations(account)
    const result = await importPortalFile(importing, account, change(file))
    expect(result.raised).toEqual(raised)
    expect(result.changes).not.toEqual([])
    const after = await generations(account)
    const expected = Object.entries(before).map(([id, each]) => [id, raised.includes(id) ? each + 1 : each])
    expect(after).toEqual(Object.fromEntries(expected))
  })

  it('follow a product to another broker: the pair of the old one is no longer wanted', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, twoProducts())
    await sql`update pairs set reached_generation = 1, withdrawal_confirmed = true, due_at = now() + interval '1 day'
      where account_id = ${account}`.execute(open.db)
    await importPortalFile(importing, account, twoProducts({ brokers: [brokerId('broker-2')] }))
    expect(await pairs(account)).toEqual([
      ['on-orders', 'broker-1', false, 2],
      ['on-orders', 'broker-2', true, 2],
      ['on-stock', 'broker-2', true, 1],
    ])
    const { rows } = await sql`select due_at, withdrawal_confirmed from pairs
      where account_id = ${account} and registration_id = 'on-orders' and broker_id = 'broker-1'`.execute(open.db)
    expect(rows).toEqual([{ due_at: null, withdrawal_confirmed: false }])
  })
})

describe('an access request', () => {
  it('is approved or waits as its product version says, and is left alone afterwards', async () => {
    const account = await newAccount()
    const file = (approvalType: 'automatic' | 'manual') =>
      portalFile({
        products: [product('orders', { versions: [productVersion({ approvalType })] })],
        registrations: [registration('app-1')],
      })
    await importPortalFile(importing, account, file('manual'))
    expect(await requests(account)).toMatchObject([{ state: 'PENDING_APPROVAL', approved: null }])
    await importPortalFile(importing, account, file('automatic'))
    expect(await requests(account)).toMatchObject([{ state: 'PENDING_APPROVAL', approved: null }])
  })

  it('stays LIVE whatever of it is approved again, and keeps its queue name', async () => {
    const account = await newAccount()
    const file = (overrides: Parameters<typeof accessRequest>[0]) =>
      portalFile({ registrations: [registration('app-1', { accessRequests: [accessRequest(overrides)] })] })
    await importPortalFile(importing, account, file({}))
    await sql`update access_requests set state = 'LIVE' where account_id = ${account}`.execute(open.db)
    const nonce = sql<{ queue_nonce: string }>`select queue_nonce from access_requests where account_id = ${account}`
    const before = await nonce.execute(open.db)
    expect((await importPortalFile(importing, account, file({ state: 'APPROVED' }))).changes).toEqual([])
    await importPortalFile(importing, account, file({ filters: { region: ['us'] } }))
    expect(await requests(account)).toMatchObject([{ state: 'LIVE', approved: expect.any(Date) }])
    expect((await nonce.execute(open.db)).rows).toEqual(before.rows)
  })

  it('that went LIVE while an import was deciding does not fall back', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile({ registrations: [registration('app-1')] }))
    await sql`update access_requests set state = 'LIVE' where account_id = ${account}`.execute(open.db)
    await writeAccessRequests(open.db, cryptoRandom, account, [
      {
        registrationId: 'app-1',
        id: 'request-1',
        productId: 'orders',
        productVersion: '1.0.0',
        planId: 'gold',
        filters: { region: ['us'] },
        state: 'APPROVED',
        approvedAtMs: NOW_MS,
        expiresAtMs: null,
        expiredAtMs: null,
      },
    ])
    expect(await requests(account)).toMatchObject([{ state: 'LIVE' }])
  })

  it('keeps the version it was made for until the file names another', async () => {
    const account = await newAccount()
    const file = (request: Parameters<typeof accessRequest>[0], versions: string[]) =>
      portalFile({
        products: [product('orders', { versions: versions.map((version) => productVersion({ version })) })],
        registrations: [registration('app-1', { accessRequests: [accessRequest(request)] })],
      })
    await importPortalFile(importing, account, file({}, ['1.0.0']))
    const newer = file({ productVersion: '2.0.0' }, ['1.0.0', '2.0.0'])
    expect((await importPortalFile(importing, account, newer)).raised).toEqual([])
    expect(await requests(account)).toMatchObject([{ version: '1.0.0' }])
    const named = file({ productVersion: '2.0.0', productVersionIsDefault: false }, ['1.0.0', '2.0.0'])
    expect((await importPortalFile(importing, account, named)).raised).toEqual(['app-1'])
    expect(await requests(account)).toMatchObject([{ version: '2.0.0' }])
  })

  it('of a registration outside the file keeps its plan in the product', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile({ registrations: [registration('app-1')] }))
    const file = portalFile({
      products: [product('orders', { versions: [productVersion({ plans: [plan('silver')] })] })],
    })
    expect(await problemsOf(importPortalFile(importing, account, file))).toEqual([
      'products[0]: plan `gold` cannot leave version 1.0.0 of product `orders`: access request `app-1/request-1` has it',
    ])
  })
})

describe('a credential', () => {
  const file = (...given: ReturnType<typeof credential>[]) =>
    portalFile({ registrations: [registration('app-1', { credentials: given })] })

  it('gets a new version with another secret, sealed anew', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, file(suppliedCredential('main', 'the-same-key', 'first-secret')))
    const result = await importPortalFile(
      importing,
      account,
      file(suppliedCredential('main', 'the-same-key', 'other-secret')),
    )
    expect(result.changes).toEqual([
      { type: 'update', kind: 'credential', id: 'app-1/main', attributes: [{ name: 'consumerSecret' }] },
    ])
    expect(result.raised).toEqual(['app-1'])
    expect(await credentials(account)).toEqual([
      { name: 'main', key: 'the-same-key', secret: 'other-secret', version: 2, retired: false },
    ])
  })

  it('with another consumer key replaces the old one', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, file(suppliedCredential('main', 'first-key-1', 'first-secret')))
    await importPortalFile(importing, account, file(suppliedCredential('main', 'other-key-1', 'other-secret')))
    expect((await credentials(account)).map(({ key, retired }) => [key, retired])).toEqual([
      ['first-key-1', true],
      ['other-key-1', false],
    ])
  })

  it('that takes a consumer key up again goes on counting its versions, as brokers have confirmed the old ones', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, file(suppliedCredential('main', 'first-key-1', 'first-secret')))
    await importPortalFile(importing, account, file(suppliedCredential('main', 'other-key-1', 'other-secret')))
    await importPortalFile(importing, account, file(suppliedCredential('main', 'first-key-1', 'third-secret')))
    const live = (await credentials(account)).filter(({ retired }) => !retired)
    expect(live).toEqual([{ name: 'main', key: 'first-key-1', secret: 'third-secret', version: 2, retired: false }])
  })

  it('cannot have the consumer key of another registration, which is named', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, file(suppliedCredential('main', 'the-same-key', 'first-secret')))
    const second = portalFile({
      registrations: [
        registration('app-2', { credentials: [suppliedCredential('mine', 'the-same-key', 'other-secret')] }),
      ],
    })
    expect(await problemsOf(importPortalFile(importing, account, second))).toEqual([
      'registrations[0].credentials: credential `mine` of registration `app-2` has the consumer key `the-same-key`, which credential `main` of registration `app-1` has already',
    ])
  })

  it('may take the consumer key that another gives up in the same file', async () => {
    const account = await newAccount()
    const both = (one: string, two: string) =>
      file(suppliedCredential('one', one, 'secret-one'), suppliedCredential('two', two, 'secret-two'))
    await importPortalFile(importing, account, both('key-number-1', 'key-number-2'))
    await importPortalFile(importing, account, both('key-number-2', 'key-number-1'))
    const live = (await credentials(account)).filter(({ retired }) => !retired)
    expect(live.map(({ name, key, version }) => [name, key, version])).toEqual([
      ['one', 'key-number-2', 2],
      ['two', 'key-number-1', 2],
    ])
  })

  it('that has expired is not made again, and works again with a later expiry time', async () => {
    const account = await newAccount()
    const expiring = (expiresAtMs: number) =>
      file(
        credential('main', {
          consumerKey: consumerKey('expiring-key'),
          consumerSecret: new Secret('first-secret'),
          expiresAtMs,
        }),
      )
    await importPortalFile(importing, account, expiring(NOW_MS))
    expect(await retireExpired(open.db, NOW_MS - 1, 10)).toBe(0)
    expect(await retireExpired(open.db, NOW_MS, 10)).toBe(1)
    expect(await generations(account)).toEqual({ 'app-1': 2 })
    expect((await importPortalFile(importing, account, expiring(NOW_MS))).changes).toEqual([])
    expect(await credentials(account)).toMatchObject([{ retired: true, version: 1 }])
    await importPortalFile(importing, account, expiring(Date.now() + 30 * DAY_MS))
    expect(await credentials(account)).toMatchObject([{ retired: false, version: 1 }])
  })
})

describe('expiry', () => {
  it('takes an access request off its brokers, a batch at a time', async () => {
    const account = await newAccount()
    const expiring = ['app-1', 'app-2', 'app-3'].map((id) =>
      registration(id, { accessRequests: [accessRequest({ expiresAtMs: Date.now() + DAY_MS })] }),
    )
    await importPortalFile(importing, account, portalFile({ registrations: [...expiring, registration('app-4')] }))
    const later = Date.now() + 2 * DAY_MS
    expect([await retireExpired(open.db, later, 2), await retireExpired(open.db, later, 2)]).toEqual([2, 1])
    expect(await retireExpired(open.db, later, 2)).toBe(0)
    expect(await pairs(account)).toEqual([
      ['app-1', 'broker-1', false, 2],
      ['app-2', 'broker-1', false, 2],
      ['app-3', 'broker-1', false, 2],
      ['app-4', 'broker-1', true, 1],
    ])
  })
})

describe('accounts', () => {
  it('do not see each other: the same ids in both stay apart', async () => {
    const one = await newAccount()
    const two = await newAccount()
    const file = (host: string) =>
      portalFile({
        brokers: ['broker-1', 'broker-2'].map((id) =>
          broker(id, {
            management: {
              url: `https://${host}-${id}`,
              msgVpnName: 'default',
              username: 'admin',
              maxConcurrentRequests: 4,
              requestTimeoutMs: 1000,
            },
          }),
        ),
        registrations: [
          registration('app-1', { credentials: [suppliedCredential('main', 'the-same-key', `secret-of-${host}`)] }),
        ],
      })
    await importPortalFile(importing, one, file('one'))
    const before = await dump(one)
    await importPortalFile(importing, two, file('two'))
    await importPortalFile(importing, two, portalFile({ ...file('two'), registrations: [registration('other')] }), {
      prune: true,
      confirmedDeletions: 1,
    })
    expect(await dump(one)).toEqual(before)
    expect(await credentials(one)).toMatchObject([{ secret: 'secret-of-one', retired: false }])
  })

  it('cannot take a message VPN of another one, in whatever spelling, and are not told whose it is', async () => {
    const one = await newAccount()
    await importPortalFile(importing, one, portalFile())
    const two = await ensureAccount(open.db, `${one}-neighbour`)
    const theirs = broker('mine', {
      management: {
        url: 'http://BROKER-1.example.:943/some/path',
        msgVpnName: 'default',
        username: 'me',
        maxConcurrentRequests: 1,
        requestTimeoutMs: 1000,
      },
    })
    const file = portalFile({ brokers: [theirs], products: [] })
    const problems = await problemsOf(importPortalFile(importing, two, file))
    expect(problems).toEqual([
      'brokers[0].management: broker `mine`: the message VPN `default` at http://BROKER-1.example.:943/some/path is in use already and cannot be managed from here',
    ])
  })

  it('that race for a message VPN: one gets it, the other an error that says so', async () => {
    const [one, two] = [await newAccount(), await newAccount()]
    const results = await Promise.allSettled([
      importPortalFile(importing, one, portalFile()),
      importPortalFile(importing, two, portalFile()),
    ])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const [refused] = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(refused).toBeInstanceOf(InvalidInputError)
  })
})

describe('brokers', () => {
  it('may swap their addresses in one import', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile())
    const [one, two] = [broker('broker-1'), broker('broker-2')]
    const file = portalFile({
      brokers: [
        { ...one, management: two.management },
        { ...two, management: one.management },
      ],
    })
    await importPortalFile(importing, account, file)
    expect((await importPortalFile(importing, account, file)).changes).toEqual([])
  })

  it('cannot move to another message VPN or go while objects of registrations are on them', async () => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile())
    await open.db
      .insertInto('ledger')
      .values(
        ['broker-1', 'broker-2'].map((broker_id) => ({
          account_id: account,
          broker_id,
          kind: 'queue' as const,
          name: 'queue-1',
          registration_id: 'app-1',
          origin: 'created' as const,
        })),
      )
      .execute()
    const moved = broker('broker-1')
    if (moved.management === null) throw new Error('the fixture has management settings')
    const file = portalFile({ brokers: [{ ...moved, management: { ...moved.management, msgVpnName: 'other' } }] })
    expect(await problemsOf(importPortalFile(importing, account, file, { prune: true }))).toEqual([
      'brokers[0].management.msgVpn: broker `broker-1` still has 1 object on its message VPN `default`; declare `other` as a new broker instead',
      'brokers: broker `broker-2` cannot be removed with 1 object of registrations on it: keep it in the file, remove it from the product versions, import, and prune it when the objects are withdrawn',
    ])
  })
})

describe('a prune', () => {
  it('removes what the file no longer holds, and registrations softly', async () => {
    const account = await newAccount()
    await importPortalFile(
      importing,
      account,
      portalFile({
        environments: [
          { id: 'prod', name: 'Production' },
          { id: 'test', name: 'Test' },
        ],
        eventApis: [eventApi('orders-api'), eventApi('old-api')],
        products: [
          product('orders'),
          product('old', {
            versions: [productVersion({ eventApis: [{ id: eventApiId('old-api'), version: '1.0.0' }] })],
          }),
        ],
        registrations: [
          registration('app-1', { credentials: [credential('main'), credential('spare')] }),
          registration('app-2'),
        ],
      }),
    )
    const file = portalFile({ brokers: [broker('broker-1')], registrations: [registration('app-1')] })
    expect((await importPortalFile(importing, account, file)).changes).toEqual([])
    const { changes, raised } = await importPortalFile(importing, account, file, { prune: true })
    expect(changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)).toEqual([
      'delete credential app-1/spare',
      'delete registration app-2',
      'delete product old',
      'delete eventApi old-api@1.0.0',
      'delete broker broker-2',
      'delete environment test',
    ])
    expect(raised.toSorted()).toEqual(['app-1', 'app-2'])
    expect(await pairs(account)).toEqual([
      ['app-1', 'broker-1', true, 2],
      ['app-2', 'broker-1', false, 2],
    ])
    expect((await credentials(account)).filter(({ retired }) => retired)).toHaveLength(2)
    expect((await requests(account)).map(({ state }) => state)).toEqual(['APPROVED', 'REVOKED'])
    expect((await importPortalFile(importing, account, file, { prune: true })).changes).toEqual([])
  })

  it('and the return of a registration start it anew under its old name, without the requests it had', async () => {
    const account = await newAccount()
    const both = portalFile({ registrations: [registration('app-1'), registration('app-2')] })
    const requestTwo = accessRequest({ id: accessRequestId('request-2') })
    const withTwo = registration('app-2', { accessRequests: [accessRequest(), requestTwo] })
    await importPortalFile(importing, account, portalFile({ registrations: [registration('app-1'), withTwo] }))
    await importPortalFile(importing, account, portalFile({ registrations: [registration('app-1')] }), { prune: true })
    const back = await importPortalFile(importing, account, both)
    expect(back.raised).toEqual(['app-2'])
    expect(await generations(account)).toEqual({ 'app-1': 1, 'app-2': 3 })
    expect(await pairs(account)).toContainEqual(['app-2', 'broker-1', true, 3])
    expect((await requests(account)).map(({ id, state }) => [id, state])).toEqual([
      ['request-1', 'APPROVED'],
      ['request-1', 'APPROVED'],
    ])
    expect((await importPortalFile(importing, account, both, { prune: true })).changes).toEqual([])
  })

  it('keeps a version that a request was made for, as deleted, until nobody names it', async () => {
    const account = await newAccount()
    const file = (versions: string[], request: Parameters<typeof accessRequest>[0] = {}) =>
      portalFile({
        products: [product('orders', { versions: versions.map((version) => productVersion({ version })) })],
        registrations: [registration('app-1', { accessRequests: [accessRequest(request)] })],
      })
    await importPortalFile(importing, account, file(['1.0.0', '2.0.0']))
    const newer = file(['2.0.0'], { productVersion: '2.0.0' })
    const { changes, raised } = await importPortalFile(importing, account, newer, { prune: true })
    expect(changes).toEqual([
      {
        type: 'delete',
        kind: 'productVersion',
        id: 'orders@1.0.0',
        attributes: [{ name: 'state', before: 'RELEASED', after: 'DELETED' }],
      },
    ])
    expect(raised).toEqual(['app-1'])
    expect(await pairs(account)).toEqual([['app-1', 'broker-1', false, 2]])
    expect((await importPortalFile(importing, account, newer, { prune: true })).changes).toEqual([])
    const named = file(['2.0.0'], { productVersion: '2.0.0', productVersionIsDefault: false })
    const last = await importPortalFile(importing, account, named, { prune: true })
    expect(last.changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)).toEqual([
      'update accessRequest app-1/request-1',
      'delete productVersion orders@1.0.0',
    ])
    expect(await pairs(account)).toEqual([['app-1', 'broker-1', true, 3]])
  })

  describe('and registrations that the API made', () => {
    const byApi = async (account: string, id: string): Promise<void> => {
      const place = { accountId: accountId(account), registrationId: id }
      // The source is the client's to name; it says nothing of who made the registration.
      const given = { name: id, source: 'portal-file', sourceOwner: null, applicationDomainId: null, attributes: [] }
      await createRegistration({ db: open.db, sealer, maxTopics: 100 }, place, given)
    }
    const asks = async (account: string, id: string): Promise<void> => {
      const place = { accountId: accountId(account), registrationId: id, accessRequestId: 'by-api' }
      const writer = { db: open.db, random: cryptoRandom, nowMs: NOW_MS, maxTopics: 100 }
      await createAccessRequest(writer, place, { productId: 'orders', planId: 'gold' })
    }
    const one = portalFile({ registrations: [registration('app-1')] })
    const kinds = ({ changes }: { readonly changes: readonly ImportChange[] }) =>
      changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)

    it('leaves them alone, with their access requests and the versions that these name', async () => {
      const account = await newAccount()
      await importPortalFile(
        importing,
        account,
        portalFile({ registrations: [registration('app-1'), registration('app-2')] }),
      )
      await byApi(account, 'client-1')
      await asks(account, 'client-1')
      expect(kinds(await importPortalFile(importing, account, one, { prune: true }))).toEqual([
        'delete registration app-2',
      ])
      const gone = portalFile({ products: [product('other')], registrations: [] })
      const agreed = { prune: true, confirmedDeletions: 2 }
      expect(kinds(await importPortalFile(importing, account, gone, agreed))).toEqual([
        'create product other',
        'create productVersion other@1.0.0',
        'delete registration app-1',
        'delete productVersion orders@1.0.0',
      ])
      const [kept] = (await requests(account)).filter(({ id }) => id === 'by-api')
      expect(kept).toMatchObject({ state: 'APPROVED' })
      expect((await importPortalFile(importing, account, gone, { prune: true })).changes).toEqual([])
    })

    it('counts them not among those of which never all go', async () => {
      const account = await newAccount()
      await importPortalFile(importing, account, one)
      await byApi(account, 'client-1')
      const prune = importPortalFile(importing, account, portalFile(), { prune: true })
      await expect(prune).rejects.toMatchObject({ code: 'MASS_DELETE_GUARD' })
    })

    it('takes those over that a file names, and removes them when it names them no more', async () => {
      const account = await newAccount()
      await importPortalFile(importing, account, one)
      await byApi(account, 'client-1')
      const both = portalFile({
        registrations: [registration('app-1'), registration('client-1', { name: 'client-1', accessRequests: [] })],
      })
      const taken = await importPortalFile(importing, account, both)
      expect(taken.changes).toContainEqual({
        type: 'update',
        kind: 'registration',
        id: 'client-1',
        attributes: expect.arrayContaining([{ name: 'declared', before: false, after: true }]),
      })
      expect((await importPortalFile(importing, account, both, { prune: true })).changes).toEqual([])
      expect(kinds(await importPortalFile(importing, account, one, { prune: true }))).toEqual([
        'delete registration client-1',
      ])
      // It comes back by the API, and is the API's.
      await byApi(account, 'client-1')
      expect((await importPortalFile(importing, account, one, { prune: true })).changes).toEqual([])
    })
  })

  const many = (count: number) => Array.from({ length: count }, (_, index) => registration(`app-${index}`))
  const guarded: readonly [string, number, number, boolean][] = [
    ['all registrations', 2, 0, true],
    ['more than 10 that are more than 30%', 30, 19, true],
    ['more than 10 that are not more than 30%', 40, 28, false],
    ['10 that are more than 30%', 20, 10, false],
  ]
  it.each(guarded)('of %s is stopped unless the number is agreed to: %i to %i', async (_what, from, to, stops) => {
    const account = await newAccount()
    await importPortalFile(importing, account, portalFile({ registrations: many(from) }))
    const before = await dump(account)
    const file = portalFile({ registrations: many(to) })
    const prune = importPortalFile(importing, account, file, { prune: true })
    if (!stops) {
      expect((await prune).changes).toHaveLength(from - to)
      return
    }
    await expect(prune).rejects.toMatchObject({
      code: 'MASS_DELETE_GUARD',
      fate: 'stop',
      hint: expect.stringContaining(`--yes-prune ${from - to}`),
    })
    const miscounted = importPortalFile(importing, account, file, { prune: true, confirmedDeletions: 1 })
    await expect(miscounted).rejects.toBeInstanceOf(KeymeshError)
    expect(await dump(account)).toEqual(before)
    const agreed = { prune: true, confirmedDeletions: from - to }
    expect((await importPortalFile(importing, account, file, agreed)).changes).toHaveLength(from - to)
  })
})

describe('6,000 registrations', () => {
  it('are imported, found unchanged, and reached by one change of their product', { timeout: 120_000 }, async () => {
    const account = await newAccount()
    const registrations = Array.from({ length: 6_000 }, (_, index) =>
      registration(`app-${index}`, {
        credentials: [
          index % 2 === 0 ? credential('main') : suppliedCredential('main', `consumer-key-${index}`, 'secret-secret'),
        ],
      }),
    )
    const file = portalFile({ registrations })
    expect((await importPortalFile(importing, account, file)).raised).toHaveLength(6_000)
    expect((await importPortalFile(importing, account, file, { prune: true })).changes).toEqual([])
    const changed = {
      ...file,
      products: [
        product('orders', { versions: [productVersion({ brokers: [brokerId('broker-1'), brokerId('broker-2')] })] }),
      ],
    }
    expect((await importPortalFile(importing, account, changed)).raised).toHaveLength(6_000)
    const { rows } = await sql`select wanted, generation, count(*) from pairs where account_id = ${account}
      group by 1, 2`.execute(open.db)
    expect(rows).toEqual([{ wanted: true, generation: 2, count: 12_000 }])
  })
})
