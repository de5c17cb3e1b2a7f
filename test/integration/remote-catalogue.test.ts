import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { readRemoteStatus } from '../../src/store/followed-catalogues.ts'
import { product, productVersion } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf } from './reconcile-fixtures.ts'
import { documented, type FollowedRemote, ordersRemote, withFollowedRemote } from './remote-fixtures.ts'

const HOUR_MS = 3_600_000

const logsIn = (at: SandboxBroker, key: string, secret: string) => at.state.checkLogin(key, secret)
const maySubscribe = (at: SandboxBroker, id: string): readonly string[] =>
  at.state.aclProfiles
    .members(id, 'subscribeTopicExceptions')
    .map((exception) => exception.replace(/^smf,/, ''))
    .toSorted()

describe('a service that follows the catalogue of another one', { timeout: 120_000 }, () => {
  let clock = Date.now()
  let followed: FollowedRemote
  let first: SandboxBroker
  let second: SandboxBroker

  beforeAll(async () => {
    followed = await withFollowedRemote({
      mesh: { brokers: 2, now: () => clock },
      portal: (brokers) => ordersRemote(brokers.slice(0, 1), [client('first'), client('second')]),
    })
    first = followed.mesh.broker(0)
    second = followed.mesh.broker(1)
  }, 120_000)
  afterAll(() => followed[Symbol.asyncDispose]())

  it('says in a dry run what it would do, and does nothing', async () => {
    const { changes, raised } = await followed.follower.pull({ dryRun: true })
    expect(changes.map(({ type, kind, id }) => `${type} ${kind} ${id}`)).toEqual([
      'create applicationDomain sales',
      'create eventApi orders-api@1.0.0',
      'create product orders',
      'create productVersion orders@1.0.0',
      'create registration first',
      'create accessRequest first/request-1',
      'create credential first/main',
      'create registration second',
      'create accessRequest second/request-1',
      'create credential second/main',
    ])
    expect(raised).toEqual([])
    expect(await readRemoteStatus(followed.mesh.context.db, followed.mesh.context.accountId)).toBeNull()
  })

  it('brings what is there to its own brokers, with the same secrets', async () => {
    const { raised } = await followed.follower.pull()
    expect(raised.toSorted()).toEqual(['first', 'second'])
    await followed.mesh.sweepAll()
    for (const id of ['first', 'second']) {
      expect(logsIn(first, keyOf(id), givenSecretOf(id))).toBe('accepted')
      expect(maySubscribe(first, id)).toEqual(['orders/placed'])
      const { queue } = objectsOf(first, id)
      expect(first.state.queues.members(queue, 'subscriptions')).toEqual(['orders/placed'])
    }
    expect(second.state.clientUsernames.has(keyOf('first'))).toBe(false)
    expect((await followed.mesh.pairs()).map(({ state }) => state)).toEqual(['in-sync', 'in-sync'])
  })

  it('finds nothing to do the second time, and reads no document again', async () => {
    const before = followed.front.requests.length
    const { changes, warnings, raised } = await followed.follower.pull()
    expect({ changes, warnings, raised }).toEqual({ changes: [], warnings: [], raised: [] })
    const asked = followed.front.requests.slice(before).map(({ path }) => path.replace('/api/v2/apim/', ''))
    expect(asked).toEqual(['eventApiProducts', 'appRegistrations', 'gateways'])
    const writes = followed.mesh.writes()
    await followed.mesh.sweepAll()
    expect(followed.mesh.writes()).toBe(writes)
  })

  it('follows a new registration with generated credentials, from its request to its approval', async () => {
    await followed.call('POST', 'appRegistrations', { registrationId: 'third', source: 'portal', name: 'Third' })
    const path = 'appRegistrations/third'
    const made = await followed.call<Made>('POST', `${path}/credentials`, { name: 'main' })
    await followed.follow()
    expect(first.state.clientUsernames.has(made.secret.consumerKey)).toBe(false)
    const request = { accessRequestId: 'third-orders', eventApiProductId: 'orders', planId: 'gold' }
    await followed.call('POST', `${path}/accessRequests`, request)
    await followed.follow()
    expect(logsIn(first, made.secret.consumerKey, made.secret.consumerSecret)).toBe('accepted')
    expect(maySubscribe(first, 'third')).toEqual(['orders/placed'])
  })

  it('follows a secret that is rotated, and a credential that comes and goes', async () => {
    const path = `appRegistrations/first/credentials`
    const secret = { consumerKey: keyOf('first'), consumerSecret: 'the-next-secret-of-first' }
    await followed.call('PATCH', `${path}/${keyOf('first')}`, { secret })
    const other = await followed.call<Made>('POST', path, { name: 'other' })
    await followed.follow()
    expect(logsIn(first, keyOf('first'), 'the-next-secret-of-first')).toBe('accepted')
    expect(logsIn(first, keyOf('first'), givenSecretOf('first'))).toBe('wrong-password')
    expect(logsIn(first, other.secret.consumerKey, other.secret.consumerSecret)).toBe('accepted')
    await followed.call('DELETE', `${path}/${other.secret.consumerKey}`)
    await followed.follow()
    expect(logsIn(first, other.secret.consumerKey, other.secret.consumerSecret)).not.toBe('accepted')
    expect(logsIn(first, keyOf('first'), 'the-next-secret-of-first')).toBe('accepted')
  })

  it('follows filters, and an access request that is revoked and asked for anew', async () => {
    const eventApis = [{ id: eventApiId('track-api'), version: '1.0.0' }]
    const version = productVersion({ eventApis, brokers: [brokerId('broker-1')], approvalType: 'manual' })
    await followed.change({
      eventApis: [...followed.portal.eventApis, await documented('track-api', { subscribe: ['track/{region}/moved'] })],
      products: [...followed.portal.products, product('track', { versions: [version] })],
    })
    const request = { accessRequestId: 'second-track', eventApiProductId: 'track', planId: 'gold' }
    const path = 'appRegistrations/second/accessRequests'
    await followed.call('POST', path, request)
    await followed.follow()
    expect(maySubscribe(first, 'second')).toEqual(['orders/placed'])
    await followed.call('PATCH', `${path}/second-track`, { state: 'APPROVED' })
    await followed.follow()
    expect(maySubscribe(first, 'second')).toEqual(['orders/placed', 'track/*/moved'])
    await followed.call('POST', `${path}/second-track/filters`, { name: 'region', values: ['north', 'south'] })
    await followed.follow()
    expect(maySubscribe(first, 'second')).toEqual(['orders/placed', 'track/north/moved', 'track/south/moved'])
    // Between two passes: what was approved here is not approved there any more.
    await followed.call('PATCH', `${path}/second-track`, { state: 'REVOKED' })
    await followed.call('PATCH', `${path}/second-track`, { state: 'PENDING_APPROVAL' })
    await followed.follow()
    expect(maySubscribe(first, 'second')).toEqual(['orders/placed'])
  })

  it('sees within an hour that a document changed under its version, and at once when it is told to look', async () => {
    const changed = (subscribe: readonly string[]) =>
      documented('orders-api', { publish: ['orders/cancel'], subscribe })
    const others = followed.portal.eventApis.filter(({ id }) => id !== 'orders-api')
    await followed.change({ eventApis: [await changed(['orders/placed', 'orders/paid']), ...others] })
    await followed.follow()
    expect(maySubscribe(first, 'first')).toEqual(['orders/placed'])
    clock += HOUR_MS
    await followed.follow()
    expect(maySubscribe(first, 'first')).toEqual(['orders/paid', 'orders/placed'])
    await followed.change({ eventApis: [await changed(['orders/placed']), ...others] })
    await followed.follower.pull({ allDocuments: true })
    await followed.mesh.sweepAll()
    expect(maySubscribe(first, 'first')).toEqual(['orders/placed'])
  })

  it('keeps a request on the version it was made for while a newer one is shown, until that is retired', async () => {
    const [orders] = followed.portal.products
    const [old] = orders?.versions ?? []
    if (orders === undefined || old === undefined) throw new Error('the product is not there')
    const eventApis = [{ id: eventApiId('orders-api'), version: '2.0.0' }]
    const next = { ...old, version: '2.0.0', eventApis, brokers: [brokerId('broker-2')] }
    const others = followed.portal.products.slice(1)
    const versions = (state: typeof old.state) => [{ ...orders, versions: [{ ...old, state }, next] }, ...others]
    const nextApi = await documented('orders-api', { subscribe: ['v2/orders/placed'] }, { version: '2.0.0' })
    await followed.change({ eventApis: [...followed.portal.eventApis, nextApi], products: versions('DEPRECATED') })
    await followed.call('POST', 'appRegistrations/first/accessRequests', {
      accessRequestId: 'first-v2',
      eventApiProductId: 'orders',
      planId: 'gold',
    })
    await followed.follow()
    expect(maySubscribe(first, 'first')).toEqual(['orders/placed'])
    expect(maySubscribe(second, 'first')).toEqual(['v2/orders/placed'])
    await followed.change({ products: versions('RETIRED') })
    await followed.follow()
    // Withdrawn: switched off at once, removed after the grace period.
    expect(logsIn(first, keyOf('first'), 'the-next-secret-of-first')).toBe('shutdown')
    expect(logsIn(second, keyOf('first'), 'the-next-secret-of-first')).toBe('accepted')
  })

  it('lets go of a registration that is deleted there', async () => {
    await followed.call('DELETE', 'appRegistrations/second')
    const { changes } = await followed.follower.pull()
    expect(changes.filter(({ type }) => type === 'delete')).toMatchObject([{ kind: 'registration', id: 'second' }])
    await followed.mesh.sweepAll()
    expect(logsIn(first, keyOf('second'), givenSecretOf('second'))).not.toBe('accepted')
  })

  it('says how it stands', async () => {
    const { db, accountId } = followed.mesh.context
    expect(await readRemoteStatus(db, accountId)).toMatchObject({
      origin: followed.url,
      followedSinceMs: expect.any(Number),
      error: null,
      warnings: [],
      unmanagedBrokers: [],
    })
  })

  it('keeps none of the secrets anywhere in clear', async () => {
    const { rows: tables } = await sql<{ name: string }>`
      select table_name as name from information_schema.tables where table_schema = 'public'`.execute(
      followed.mesh.context.db,
    )
    const secrets = [...(await followed.mesh.secrets()).values(), givenSecretOf('first'), followed.remote.token]
    expect(secrets.length).toBeGreaterThan(3)
    for (const { name } of tables) {
      const { rows } = await sql<{ row: string }>`select t::text as row from ${sql.table(name)} t`.execute(
        followed.mesh.context.db,
      )
      const text = rows.map(({ row }) => row).join('\n')
      expect(secrets.filter((secret) => text.includes(secret))).toEqual([])
    }
  })
})

interface Made {
  readonly secret: { readonly consumerKey: string; readonly consumerSecret: string }
}
