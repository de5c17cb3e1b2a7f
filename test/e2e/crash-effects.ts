import { expect } from 'vitest'
import { keysAfter, mainKey, otherKey, type Row } from './crash-rows.ts'
import type { CrashWorld } from './crash-world.ts'

/** The stored secrets of a registration by consumer key, as they are now. */
export async function secretsOf({ mesh }: CrashWorld, { id }: Row): Promise<Readonly<Record<string, string>>> {
  const secrets = await mesh.secrets()
  return Object.fromEntries([...secrets].filter(([key]) => key === mainKey(id) || key === otherKey(id)))
}

/** What the store has of a registration, times apart. */
async function storedOf({ mesh }: CrashWorld, { id }: Row) {
  const { db } = mesh.context
  const ledger = await db.selectFrom('ledger').selectAll().where('registration_id', '=', id).orderBy('name').execute()
  const requests = await db
    .selectFrom('access_requests')
    .select(['id', 'state', 'reason'])
    .where('registration_id', '=', id)
    .execute()
  const credentials = await db
    .selectFrom('credentials')
    .select(['consumer_key', 'secret_version'])
    .where('registration_id', '=', id)
    .where('retired_at', 'is', null)
    .orderBy('consumer_key')
    .execute()
  const verdicts = await db
    .selectFrom('login_verdicts')
    .select(['consumer_key', 'credential_version', 'protocol', 'outcome'])
    .where('registration_id', '=', id)
    .orderBy('consumer_key')
    .execute()
  const drift = await db.selectFrom('drift').select(['kind', 'object_name']).where('registration_id', '=', id).execute()
  return { ledger, requests, credentials, verdicts, drift }
}

/** What a broker has of a registration. */
export function onBroker({ mesh }: CrashWorld, { id, broker }: Row) {
  const { state } = mesh.broker(broker)
  const { aclProfiles, clientUsernames, queues } = state
  const names = [mainKey(id), otherKey(id)]
  const usernames = clientUsernames.names().filter((name) => clientUsernames.get(name)?.aclProfileName === id)
  const subscribe = aclProfiles.has(id) ? aclProfiles.members(id, 'subscribeTopicExceptions') : null
  return {
    subscribe,
    passwords: Object.fromEntries(usernames.map((name) => [name, state.passwordOf(name)])),
    enabled: usernames.filter((name) => clientUsernames.get(name)?.enabled === true),
    /** Under whatever ACL profile. */
    clientUsernames: clientUsernames.names().filter((name) => names.includes(name)),
    queues: queues
      .names()
      .map((name) => ({ owner: String(queues.get(name)?.owner), topics: queues.members(name, 'subscriptions') }))
      .filter(({ owner }) => names.includes(owner)),
  }
}

/** In the store, on the broker and for clients: everything once, nothing missing. */
export async function expectInEffect(
  world: CrashWorld,
  row: Row,
  secrets: Readonly<Record<string, string>>,
): Promise<void> {
  const keys = keysAfter(row)
  const stored = await storedOf(world, row)
  const found = onBroker(world, row)
  expect(stored.drift).toEqual([])
  if (keys === null) {
    expect(found).toEqual({ subscribe: null, passwords: {}, enabled: [], clientUsernames: [], queues: [] })
    expect(stored).toMatchObject({ ledger: [], credentials: [] })
    expect(await world.call('GET', `/${row.id}`)).toMatchObject({ status: 404 })
    return
  }
  expect(await secretsOf(world, row)).toEqual(secrets)
  expect(Object.keys(secrets).toSorted()).toEqual(keys)
  expect(stored.credentials.map(({ consumer_key: key }) => key)).toEqual(keys)
  expect(found.passwords).toEqual(secrets)
  expect(found.enabled).toEqual(keys)
  expect(found.clientUsernames).toEqual(keys)
  expect(found.subscribe).toEqual(['smf,orders-api/*'])
  expect(found.queues).toEqual([{ owner: mainKey(row.id), topics: ['orders-api/*'] }])
  for (const key of keys) expect(await world.login(row.broker, key, secrets[key] ?? '')).toBe('accepted')
  const versions = new Map(stored.credentials.map(({ consumer_key: key, secret_version: version }) => [key, version]))
  expect(stored.ledger.map(({ kind }) => kind).toSorted()).toEqual([
    'aclProfile',
    ...keys.map(() => 'clientUsername'),
    'queue',
  ])
  for (const {
    kind,
    name,
    applied,
    confirmed_credential_version: confirmed,
    withdrawn_at: withdrawn,
  } of stored.ledger) {
    expect({ name, isApplied: applied !== null, withdrawn }).toEqual({ name, isApplied: true, withdrawn: null })
    expect(confirmed).toBe(kind === 'clientUsername' ? versions.get(name) : null)
  }
  expect(stored.requests).toEqual([{ id: 'request-1', state: 'LIVE', reason: null }])
  expect(stored.verdicts.filter(({ consumer_key: key }) => keys.includes(key))).toEqual(
    keys.map((key) => ({
      consumer_key: key,
      credential_version: versions.get(key),
      protocol: 'mqtt',
      outcome: 'accepted',
    })),
  )
  const plan = await world.mesh.context.engine.planPair(world.mesh.pair(row.id, row.broker))
  expect(plan?.steps).toEqual([])
}
