import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AccountId } from '../../src/domain/ids.ts'
import { NOTIFICATION_KINDS, type NotificationKind } from '../../src/domain/notifications.ts'
import { Secret } from '../../src/domain/secret.ts'
import { NotificationSender } from '../../src/notifications/notification-sender.ts'
import { Notifier } from '../../src/notifier.ts'
import { deleteAccount } from '../../src/store/accounts.ts'
import { recordFailures as recordBrokerFailures, recordSuccess } from '../../src/store/broker-health.ts'
import { listDeliveries, readDelivery, resendDead, resendDelivery } from '../../src/store/notification-deliveries.ts'
import { makeTest } from '../../src/store/notification-digest.ts'
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  rotateSigningSecret,
} from '../../src/store/notification-endpoints.ts'
import { type EndpointPlace, requireEndpoint } from '../../src/store/notification-endpoints-view.ts'
import { dueEndpoints, noticeExpiring } from '../../src/store/notification-outbox.ts'
import { pruneRecords } from '../../src/store/prune.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { createSealedRows } from '../../src/store/sealed-rows.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import {
  isSignedBy,
  type NotificationReceiver,
  type ReceivedPost,
  startReceiver,
} from '../helpers/notification-receiver.ts'
import { client, ordersPortal } from './reconcile-fixtures.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const RETRY_MS = 24 * HOUR_MS
const anyRevision = (): void => undefined

let mesh: TestMesh
let receiver: NotificationReceiver
let sender: NotificationSender
let nowMs = Date.UTC(2030, 0, 1)
const now = (): number => nowMs

beforeAll(async () => {
  mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, [client('app-a')]) })
  await mesh.sweep()
  receiver = await startReceiver()
  sender = new NotificationSender({ allowHttp: true, allowedNetworks: ['loopback'], timeoutMs: 1_000 })
})
afterAll(async () => {
  await sender?.close()
  await receiver?.[Symbol.asyncDispose]()
  await mesh?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await sql`delete from notification_endpoints`.execute(mesh.context.db)
  await sql`delete from drift`.execute(mesh.context.db)
  receiver.posts.length = 0
  receiver.answers.length = 0
  nowMs += 24 * HOUR_MS
})

interface TestEndpoint extends EndpointPlace {
  readonly signingSecret: string
}

async function endpoint(
  kinds: readonly NotificationKind[] = NOTIFICATION_KINDS,
  given: { readonly name?: string; readonly url?: string; readonly account?: AccountId } = {},
): Promise<TestEndpoint> {
  const { db, sealer, accountId } = mesh.context
  const { view, signingSecret } = await createEndpoint(
    { db, sealer, random: cryptoRandom },
    given.account ?? accountId,
    {
      name: given.name ?? 'pager',
      url: new Secret(given.url ?? receiver.url),
      kinds,
      enabled: true,
    },
  )
  return { accountId: given.account ?? accountId, endpointId: view.id, signingSecret: signingSecret.reveal() }
}

function notifier(overrides: Partial<ConstructorParameters<typeof Notifier>[0]> = {}): Notifier {
  const { db, sealer, log } = mesh.context
  return new Notifier({
    db,
    sealer,
    sender,
    now,
    ids: cryptoRandom,
    random: () => 0.5,
    retryMs: RETRY_MS,
    log,
    ...overrides,
  })
}

/** As the poll and its jobs do it. */
async function deliverDue(): Promise<void> {
  for (const place of await dueEndpoints(mesh.context.db, nowMs, 100)) await notifier().deliver(place)
}

const kindsOf = ({ payload }: ReceivedPost): readonly string[] => payload.data.notifications.map(({ kind }) => kind)
const deliveries = async (place: EndpointPlace) =>
  (await listDeliveries(mesh.context.db, place, { limit: 100, offset: 0 })).deliveries

let made = 0
/** Differences as a run records them. */
async function drift(count: number, action: 'repaired' | 'failed' | 'held' | 'reported' = 'repaired'): Promise<void> {
  made += count
  await sql`
    insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after,
                       action, run_id, detected_at, last_seen_at)
    select ${mesh.context.accountId}, 'broker-1', 'app-a', 'queue', 'queue-' || ${made}::integer || '-' || n, 'missing', 'test', '{}', '{}',
      ${action}, 'run', ${new Date(nowMs)}, ${new Date(nowMs)}
    from generate_series(1, ${count}) n`.execute(mesh.context.db)
}

describe('a fact', () => {
  it('of drift on a broker is told once, in a signed post that the receiver can verify', async () => {
    const { signingSecret, ...place } = await endpoint()
    const { state } = mesh.broker()
    const [queue] = state.queues.names()
    if (queue === undefined) throw new Error('the broker has no queue')
    state.queues.remove(queue)
    await mesh.sweep()
    await deliverDue()
    await mesh.sweep()
    nowMs += 2 * MINUTE_MS
    await deliverDue()
    expect(receiver.posts).toHaveLength(1)
    const [post] = receiver.posts
    if (post === undefined) throw new Error('nothing was posted')
    expect(post.payload.data).toMatchObject({
      accountId: place.accountId,
      accountName: 'default',
      endpointId: place.endpointId,
      counts: { 'drift.found': 1 },
      omitted: 0,
      notifications: [
        {
          kind: 'drift.found',
          summary: expect.stringContaining(`queue ${queue} is missing (repaired)`),
          subject: { brokerId: 'broker-1', registrationId: 'app-a', objectName: queue, action: 'repaired' },
        },
      ],
    })
    expect(isSignedBy(signingSecret, post)).toBe(true)
    expect(isSignedBy(signingSecret, { ...post, body: `${post.body} ` })).toBe(false)
    const late = { ...post.headers, 'webhook-timestamp': '1' }
    expect(isSignedBy(signingSecret, { ...post, headers: late })).toBe(false)
    expect(Number(post.headers['webhook-timestamp'])).toBeCloseTo(nowMs / 1000, -3)
    expect(await deliveries(place)).toMatchObject([
      { id: post.headers['webhook-id'], state: 'delivered', attempts: 1, lastStatus: 204, notifications: 1 },
    ])
  })

  const unrepairable: Readonly<
    Record<string, readonly [actions: readonly Parameters<typeof drift>[1][], told: number]>
  > = {
    'that is repaired': [['repaired'], 0],
    'that is held': [['held'], 1],
    'that can only be reported': [['reported'], 1],
    'whose repair failed for now': [['failed'], 0],
  }
  it.each(Object.entries(unrepairable))('of drift %s is told as it should', async (_sentence, [actions, told]) => {
    await endpoint(['drift.unrepairable'])
    for (const action of actions) await drift(1, action)
    // Seen again, and again: no news.
    await sql`update drift set last_seen_at = now(), action = action`.execute(mesh.context.db)
    await deliverDue()
    expect(receiver.posts.flatMap(kindsOf)).toEqual(Array(told).fill('drift.unrepairable'))
  })

  it('of drift whose repair fails for good is told when that is known, once', async () => {
    await endpoint(['drift.unrepairable'])
    const { db } = mesh.context
    await drift(1, 'failed')
    await sql`update pairs set needs_person = true`.execute(db)
    await sql`update drift set action = 'failed'`.execute(db)
    await sql`update drift set action = 'held'`.execute(db)
    await sql`update drift set action = 'repaired', repaired_at = now()`.execute(db)
    await sql`update pairs set needs_person = false`.execute(db)
    await deliverDue()
    expect(receiver.posts.flatMap(kindsOf)).toEqual(['drift.unrepairable'])
  })

  it('of a broker that goes down and comes back is told once each, however often it fails between', async () => {
    await endpoint()
    const { db } = mesh.context
    const fail = (prober: string | null = null) => recordBrokerFailures(db, mesh.key(), [{ nowMs, random: 0, prober }])
    for (let failures = 0; failures < 8; failures += 1) await fail()
    await sql`update broker_status set health = 'half-open', prober = 'me', prober_until = now()`.execute(db)
    await fail('me')
    await recordSuccess(db, mesh.key())
    await recordSuccess(db, mesh.key())
    await deliverDue()
    const [post] = receiver.posts
    expect(post?.payload.data.notifications).toMatchObject([
      { kind: 'broker.down', subject: { brokerId: 'broker-1' } },
      { kind: 'broker.back', subject: { brokerId: 'broker-1', downSinceMs: expect.any(Number) } },
    ])
    expect(post?.payload.data.counts).toEqual({ 'broker.down': 1, 'broker.back': 1 })
  })

  it('of a credential that expires soon is told once for each expiry', async () => {
    await endpoint()
    const { db } = mesh.context
    const notice = async () => {
      await noticeExpiring(db, nowMs, 7 * 24 * HOUR_MS)
      await deliverDue()
      nowMs += 2 * MINUTE_MS
      return receiver.posts.splice(0).flatMap(({ payload }) => payload.data.notifications.map(({ subject }) => subject))
    }
    const expireIn = async (ms: number) => {
      await sql`update credentials set expires_at = ${new Date(nowMs + ms)}`.execute(db)
      return nowMs + ms
    }
    expect(await notice()).toEqual([])
    await expireIn(8 * 24 * HOUR_MS)
    expect(await notice()).toEqual([])
    const expiresAtMs = await expireIn(6 * 24 * HOUR_MS)
    expect(await notice()).toMatchObject([{ registrationId: 'app-a', credentialName: 'main', expiresAtMs }])
    expect(await notice()).toEqual([])
    await pruneRecords(db, nowMs + HOUR_MS)
    expect(await notice()).toEqual([])
    await expireIn(5 * 24 * HOUR_MS)
    expect(await notice()).toHaveLength(1)
    await sql`update credentials set expires_at = null`.execute(db)
  })

  it('of an access request that waits is told at each turn to waiting', async () => {
    await endpoint()
    const { db } = mesh.context
    const setState = (state: string) => sql`update access_requests set state = ${state}`.execute(db)
    const { rows } = await sql<{ state: string }>`select state from access_requests`.execute(db)
    await setState('PENDING_APPROVAL')
    await setState('PENDING_APPROVAL')
    await setState('APPROVED')
    await setState('PENDING_APPROVAL')
    await deliverDue()
    await setState(rows[0]?.state ?? 'LIVE')
    expect(receiver.posts.flatMap(kindsOf)).toEqual(['access-request.waiting', 'access-request.waiting'])
  })

  it('that is rolled back is not told', async () => {
    await endpoint()
    const { db } = mesh.context
    await db
      .transaction()
      .execute(async (trx) => {
        await sql`update access_requests set state = 'PENDING_APPROVAL'`.execute(trx)
        throw new Error('a crash before the commit')
      })
      .catch(() => undefined)
    await deliverDue()
    expect(receiver.posts).toEqual([])
  })

  it('of any kind is told to nobody of another account', async () => {
    const { db } = mesh.context
    await sql`insert into accounts (id, name) values ('other', 'other') on conflict do nothing`.execute(db)
    await endpoint(NOTIFICATION_KINDS, { account: 'other' as AccountId })
    await drift(1, 'held')
    await recordFailures()
    await recordSuccess(db, mesh.key())
    const { rows } = await sql<{ state: string }>`select state from access_requests`.execute(db)
    await sql`update access_requests set state = 'PENDING_APPROVAL'`.execute(db)
    await sql`update access_requests set state = ${rows[0]?.state ?? 'LIVE'}`.execute(db)
    await sql`update credentials set expires_at = ${new Date(nowMs + HOUR_MS)}`.execute(db)
    await noticeExpiring(db, nowMs, 2 * HOUR_MS)
    await sql`update credentials set expires_at = null`.execute(db)
    expect(await db.selectFrom('notifications').selectAll().execute()).toEqual([])
  })

  it('is told to those who asked for its kind and are switched on', async () => {
    const { db, sealer } = mesh.context
    await endpoint(['broker.down'], { name: 'brokers' })
    const off = await endpoint(['drift.found'], { name: 'off' })
    await changeEndpoint({ db, sealer, random: cryptoRandom }, off, { enabled: false }, anyRevision)
    await drift(1)
    await changeEndpoint({ db, sealer, random: cryptoRandom }, off, { enabled: true }, anyRevision)
    await deliverDue()
    expect(receiver.posts).toEqual([])
  })
})

describe('deliveries', () => {
  it('are one digest in a minute, which lists some and counts all', async () => {
    const place = await endpoint()
    await drift(1)
    await deliverDue()
    await drift(250)
    await drift(250, 'held')
    await recordFailures()
    await deliverDue()
    nowMs += MINUTE_MS - 1
    await deliverDue()
    expect(receiver.posts).toHaveLength(1)
    nowMs += 1
    await deliverDue()
    await deliverDue()
    expect(receiver.posts).toHaveLength(2)
    const { counts, omitted, notifications } = receiver.posts[1]?.payload.data ?? {}
    expect(counts).toEqual({ 'drift.found': 500, 'drift.unrepairable': 250, 'broker.down': 1 })
    expect(notifications).toHaveLength(100)
    expect(omitted).toBe(651)
    expect(notifications?.filter(({ kind }) => kind === 'broker.down')).toHaveLength(1)
    expect(await deliveries(place)).toMatchObject([{ notifications: 751 }, { notifications: 1 }])
    await recordSuccess(mesh.context.db, mesh.key())
  })

  it('are tried again, ever later, with the same id and body, and signed anew', async () => {
    const { signingSecret, ...place } = await endpoint()
    receiver.answers.push(500, 503, (response) => response.socket?.destroy(), 429, 204)
    await drift(1)
    const waits: number[] = []
    for (;;) {
      await deliverDue()
      const [delivery] = await deliveries(place)
      if (delivery?.state !== 'pending') break
      const dueMs = delivery.nextAttemptAtMs ?? 0
      waits.push(dueMs - nowMs)
      nowMs = dueMs - 1
      await deliverDue()
      nowMs = dueMs
    }
    expect(waits).toEqual([7_500, 15_000, 30_000, 60_000])
    expect(receiver.posts).toHaveLength(5)
    expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(receiver.posts.map(({ body }) => body)).size).toBe(1)
    expect(new Set(receiver.posts.map(({ headers }) => headers['webhook-timestamp'])).size).toBeGreaterThan(1)
    for (const post of receiver.posts) expect(isSignedBy(signingSecret, post)).toBe(true)
    expect(await deliveries(place)).toMatchObject([{ state: 'delivered', attempts: 5, lastError: null }])
  })

  it('that fail for a day are dead letters, which can be sent again', async () => {
    const place = await endpoint()
    const { db } = mesh.context
    receiver.answers.push(...Array<number>(60).fill(500))
    await drift(1)
    const startMs = nowMs
    let [delivery] = await deliveries(place)
    do {
      await deliverDue()
      ;[delivery] = await deliveries(place)
      nowMs = delivery?.nextAttemptAtMs ?? nowMs
    } while (delivery?.state === 'pending')
    expect(delivery).toMatchObject({ state: 'dead', lastStatus: 500, lastError: 'The receiver answered HTTP 500.' })
    expect((nowMs - startMs) / HOUR_MS).toBeGreaterThan(22)
    expect((nowMs - startMs) / HOUR_MS).toBeLessThanOrEqual(24)
    expect(receiver.posts.length).toBeGreaterThan(25)
    const { view } = await requireEndpoint(db, place)
    expect(view).toMatchObject({ deadDeliveries: 1, failingSinceMs: startMs, lastError: delivery?.lastError })
    receiver.answers.length = 0
    expect(await resendDead(db, place, { nowMs, retryMs: RETRY_MS })).toBe(1)
    await deliverDue()
    expect(await deliveries(place)).toMatchObject([{ id: delivery?.id, state: 'delivered' }])
    expect((await requireEndpoint(db, place)).view).toMatchObject({ deadDeliveries: 0, failingSinceMs: null })
    await resendDelivery(db, place.accountId, delivery?.id ?? '', { nowMs, retryMs: RETRY_MS })
    await deliverDue()
    expect(receiver.posts.at(-1)?.headers['webhook-id']).toBe(delivery?.id)
  })

  it('wait behind one that meets a failing receiver, and gather meanwhile', async () => {
    const place = await endpoint()
    receiver.answers.push(500, 500, 500, 500)
    await drift(1)
    await deliverDue()
    for (let minute = 0; minute < 3; minute += 1) {
      await drift(1)
      nowMs += MINUTE_MS
      await deliverDue()
    }
    expect(await deliveries(place)).toMatchObject([{ state: 'pending', attempts: 4 }])
    nowMs += HOUR_MS
    await deliverDue()
    expect(receiver.posts.slice(3).map(({ payload }) => payload.data.counts)).toEqual([
      { 'drift.found': 1 },
      { 'drift.found': 1 },
      { 'drift.found': 3 },
    ])
    expect(await deliveries(place)).toMatchObject([{ state: 'delivered' }, { state: 'delivered' }])
  })

  it('do not wait behind one that the receiver refuses', async () => {
    const place = await endpoint()
    receiver.answers.push(422)
    await drift(1)
    await deliverDue()
    await drift(1)
    nowMs += MINUTE_MS
    await sql`update notification_deliveries set next_attempt_at = ${new Date(nowMs + HOUR_MS)}`.execute(
      mesh.context.db,
    )
    await deliverDue()
    expect((await deliveries(place)).map(({ state }) => state)).toEqual(['delivered', 'pending'])
  })

  it('to a receiver that wants no more switch its endpoint off', async () => {
    const place = await endpoint()
    receiver.answers.push(410)
    await drift(1)
    await deliverDue()
    const { view } = await requireEndpoint(mesh.context.db, place)
    expect(view).toMatchObject({ enabled: false, disabledReason: 'The receiver answered HTTP 410.', deadDeliveries: 1 })
    const [delivery] = await deliveries(place)
    await expect(
      resendDelivery(mesh.context.db, place.accountId, delivery?.id ?? '', { nowMs, retryMs: RETRY_MS }),
    ).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  it('are sent again after a crash between the receiver and the record, by the same id', async () => {
    const place = await endpoint()
    await drift(1)
    const crashing = notifier({
      sender: {
        send: async (message, signal) => {
          await sender.send(message, signal)
          throw new Error('a crash after the answer')
        },
      },
    })
    await expect(crashing.deliver(place)).rejects.toThrow('a crash after the answer')
    await deliverDue()
    const [first, second] = receiver.posts
    expect(receiver.posts).toHaveLength(2)
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(second?.body).toBe(first?.body)
  })

  it('of one endpoint go out by one sender at a time; one that died gives way', async () => {
    const place = await endpoint()
    await drift(1)
    await sql`update notification_endpoints set lease_holder = 'dead', lease_until = ${new Date(nowMs + 30_000)}`.execute(
      mesh.context.db,
    )
    expect(await notifier().deliver(place)).toBe(0)
    nowMs += 31_000
    const sent = await Promise.all([notifier().deliver(place), notifier().deliver(place), notifier().deliver(place)])
    expect(sent.sort()).toEqual([0, 0, 1])
    expect(receiver.posts).toHaveLength(1)
  })

  it('for a test tell who asked, are tried once, and need no news', async () => {
    const place = await endpoint([])
    const id = await makeTest(mesh.context.db, place, { nowMs, requestedBy: 'ada', random: cryptoRandom })
    receiver.answers.push(500)
    await deliverDue()
    expect(receiver.posts.flatMap(kindsOf)).toEqual(['test'])
    expect(await readDelivery(mesh.context.db, place.accountId, id)).toMatchObject({
      state: 'dead',
      test: true,
      attempts: 1,
    })
    expect(await dueEndpoints(mesh.context.db, nowMs, 10)).toEqual([])
  })

  it('are signed with the older secret too while receivers change over', async () => {
    const { signingSecret: older, ...place } = await endpoint()
    const { db, sealer } = mesh.context
    const writer = { db, sealer, random: cryptoRandom }
    const { signingSecret } = await rotateSigningSecret(writer, place, { nowMs, overlapMs: HOUR_MS })
    const signers = async () => {
      await drift(1)
      await deliverDue()
      const post = receiver.posts.splice(0)[0]
      return [older, signingSecret.reveal()].map((secret) => post !== undefined && isSignedBy(secret, post))
    }
    expect(await signers()).toEqual([true, true])
    nowMs += HOUR_MS
    expect(await signers()).toEqual([false, true])
  })
})

describe('what is stored', () => {
  it('of an endpoint shows neither the secret nor what the URL hides, and follows the rotation of keys', async () => {
    const url = `http://ada:hidden-password@127.0.0.1:${receiver.port}/hook?token=hidden-token`
    const { signingSecret, ...place } = await endpoint(undefined, { url })
    const { db } = mesh.context
    const dump = JSON.stringify(await db.selectFrom('notification_endpoints').selectAll().execute())
    expect(dump).not.toMatch(/hidden/)
    expect(dump).not.toContain(signingSecret)
    expect((await requireEndpoint(db, place)).view.address).toBe(`http://127.0.0.1:${receiver.port}/hook?…`)
    const sealed = (await createSealedRows(db).next(null, 100)).filter(
      ({ place: { table } }) => table === 'notification_endpoints',
    )
    expect(sealed).toMatchObject([{ place: { rowId: place.endpointId, version: 1 } }])
    await drift(1)
    await deliverDue()
    const [post] = receiver.posts
    expect(post?.path).toBe('/hook?token=hidden-token')
    expect(post?.headers.authorization).toBe(`Basic ${Buffer.from('ada:hidden-password').toString('base64')}`)
    expect(post?.body).not.toMatch(/hidden/)
  })

  it('goes with the account', async () => {
    const { db } = mesh.context
    await sql`insert into accounts (id, name) values ('short-lived', 'short-lived')`.execute(db)
    await endpoint(undefined, { account: 'short-lived' as AccountId })
    await deleteAccount(db, { id: 'short-lived', name: 'short-lived' })
    expect(await db.selectFrom('notification_endpoints').selectAll().execute()).toEqual([])
  })

  it('goes with the endpoint, or when it is old', async () => {
    const { db } = mesh.context
    const place = await endpoint()
    await drift(2)
    await deliverDue()
    await drift(1)
    await pruneRecords(db, nowMs - 1)
    expect(await deliveries(place)).toHaveLength(1)
    await pruneRecords(db, nowMs + 1)
    expect(await deliveries(place)).toEqual([])
    await drift(1)
    await deleteEndpoint(db, place, anyRevision)
    const { rows } = await sql`select 1 from notifications union all select 1 from notification_deliveries`.execute(db)
    expect(rows).toEqual([])
  })
})

async function recordFailures(): Promise<void> {
  const failure = { nowMs, random: 0, prober: null }
  await recordBrokerFailures(mesh.context.db, mesh.key(), Array(5).fill(failure))
}
