import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { notVerified, type Verdict } from '../../src/domain/verdict.ts'
import type { LoginPort } from '../../src/reconcile/login-port.ts'
import type { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { type BrokerBackup, backUp, restore } from '../helpers/broker-backup.ts'
import { type RunningMesh, startRunningMesh } from '../helpers/running-mesh.ts'
import { until } from '../helpers/service.ts'
import { suppliedCredential } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

interface Lost {
  readonly what: string
  readonly index: number
  /** What happens to the broker while the worker is at work; `old` is a backup from before the last changes. */
  readonly happen: (sandbox: SandboxBroker, old: BrokerBackup) => unknown
  /** What happens later, when the worker has seen it. */
  readonly end?: (sandbox: SandboxBroker, last: BrokerBackup) => unknown
  /** The error that it has in between; null: none is needed. */
  readonly code: string | null
}

const restart = async (sandbox: SandboxBroker, meanwhile: () => void): Promise<void> => {
  await sandbox.stop()
  meanwhile()
  await sandbox.start()
}

/** Broker 0 keeps all that it has. */
const LOST: readonly Lost[] = [
  { what: 'is wiped in the middle of its work', index: 1, code: null, happen: (sandbox) => sandbox.wipe() },
  {
    what: 'is replaced by an empty one',
    index: 2,
    code: null,
    happen: (sandbox) => restart(sandbox, () => sandbox.wipe()),
  },
  {
    what: 'is restored from an old backup',
    index: 3,
    code: null,
    happen: (sandbox, old) => restart(sandbox, () => restore(sandbox.state, old)),
  },
  {
    what: 'is restored from an old backup, and again',
    index: 4,
    code: null,
    happen: (sandbox, old) => restore(sandbox.state, old),
    end: (sandbox) => restore(sandbox.state, old),
  },
  {
    what: 'loses its message VPN, which comes back as it was',
    index: 5,
    code: 'MSG_VPN_NOT_FOUND',
    happen: ({ state }) => state.removeMsgVpn(),
    end: (sandbox, last) => {
      sandbox.wipe()
      restore(sandbox.state, last)
    },
  },
  {
    what: 'loses its message VPN, which comes back empty',
    index: 6,
    code: 'MSG_VPN_NOT_FOUND',
    happen: ({ state }) => state.removeMsgVpn(),
    end: (sandbox) => sandbox.wipe(),
  },
  {
    what: 'loses its message VPN, which comes back from an old backup',
    index: 7,
    code: 'MSG_VPN_NOT_FOUND',
    happen: ({ state }) => state.removeMsgVpn(),
    end: (sandbox, _last) => {
      sandbox.wipe()
      restore(sandbox.state, old)
    },
  },
]

const ROTATED_SECRET = 'second-secret-of-rotated-Lw20'
const rotated = client('rotated', { credentials: [suppliedCredential('main', keyOf('rotated'), ROTATED_SECRET)] })
const FIRST = [client('same'), client('rotated'), client('narrowed'), client('deleted')]
/** After the backup, before the loss. */
const SECOND: readonly PortalRegistration[] = [
  client('same'),
  rotated,
  client('narrowed', { filters: { region: ['asia'] } }),
  client('later'),
]
/** While brokers are lost. */
const THIRD = [...SECOND, client('last')]
const LIVE = ['same', 'rotated', 'narrowed', 'later', 'last']
const LEGACY = { enabled: true, password: 'the-password-of-a-legacy-client' }
/** What clients of `narrowed` may receive; the others have no filter. */
const NARROW = ['smf,orders/asia/changed', 'smf,orders/asia/placed']

let world: RunningMesh
let old: BrokerBackup
let ledgerBefore: readonly object[]
let ledgerDuring: readonly object[]
let healthyLogin: string | null = null

/** Asks the accounts of the simulated brokers; the port says which. */
const login: LoginPort = {
  async probe({ port }, { username, password }): Promise<Verdict> {
    const sandbox = world.mesh.sandbox.brokers[port - FIRST_PORT]
    if (sandbox === undefined) return notVerified('refused', 'no such port')
    const outcome = sandbox.state.checkLogin(username, password.reveal())
    if (outcome === 'accepted') return { outcome }
    if (outcome === 'shutdown') return { outcome: 'disabled', detail: outcome }
    if (outcome === 'msg-vpn-shutdown') return { outcome: 'vpn-down', detail: outcome }
    return { outcome: 'rejected', detail: outcome }
  },
}
const FIRST_PORT = 20_000

const ledger = async (): Promise<readonly object[]> =>
  world.mesh.context.db
    .selectFrom('ledger')
    .select(['broker_id', 'kind', 'name', 'registration_id', 'origin', 'applied', 'withdrawn_at'])
    .where(
      'broker_id',
      'in',
      LOST.filter(({ code }) => code !== null).map(({ index }) => `broker-${index + 1}`),
    )
    .orderBy('broker_id')
    .orderBy('kind')
    .orderBy('name')
    .execute()

const isEnabled = ({ clientUsernames }: MsgVpnState, id: string): unknown => clientUsernames.get(keyOf(id))?.enabled

beforeAll(async () => {
  world = await startRunningMesh({
    brokers: LOST.length + 1,
    login,
    env: { KEYMESH_LOGINS: 'true', KEYMESH_LOGIN_EVERY: '1s' },
    broker: (broker, index) => ({
      ...broker,
      messaging: { host: 'localhost', protocols: [{ protocol: 'smfs', port: FIRST_PORT + index }] },
    }),
  })
  const all = world.brokers.map((_, index) => index)
  const sandboxes = all.map((index) => world.sandbox(index))
  await world.import(ordersPortal(world.brokers, FIRST))
  await world.start()
  await world.settled(all)
  for (const { state } of sandboxes) state.clientUsernames.put('legacy', LEGACY)
  old = backUp(world.sandbox(0).state)
  await world.import({ registrations: SECOND }, { prune: true, confirmedDeletions: 1 })
  await world.settled(all)
  for (const { state } of sandboxes) expect(isEnabled(state, 'deleted')).toBe(false)

  const last = backUp(world.sandbox(0).state)
  ledgerBefore = await ledger()
  for (const { happen, index } of LOST) await happen(world.sandbox(index), old)
  await world.import({ registrations: THIRD })
  await world.settled([0])
  healthyLogin = world.sandbox(0).state.checkLogin(keyOf('last'), givenSecretOf('last'))
  for (const { code, index, what } of LOST) {
    // Where nothing fails, it is healed at once.
    if (code !== null) {
      await until(`${code} shows`, async () => ((await statusOf(index)) === code ? true : null))
      continue
    }
    await healed(what, index)
    // A password that is refused again after it was written again, without a login in between, is left to a person.
    await until(`the broker that ${what} has its logins proved`, async () =>
      (await refused(index)) === 0 ? true : null,
    )
  }
  ledgerDuring = await ledger()
  for (const { end, index } of LOST) await end?.(world.sandbox(index), last)
  for (const { index, what } of LOST) await healed(what, index)
  await world.settled(all)
}, 300_000)
afterAll(() => world[Symbol.asyncDispose]())

async function statusOf(index: number): Promise<string | null> {
  const { db } = world.mesh.context
  const rows = db
    .selectFrom('broker_status')
    .select('error_code')
    .where('broker_id', '=', `broker-${index + 1}`)
  return (await rows.executeTakeFirst())?.error_code ?? null
}

async function refused(index: number): Promise<number> {
  const { db } = world.mesh.context
  const rows = db
    .selectFrom('ledger')
    .select('name')
    .where('broker_id', '=', `broker-${index + 1}`)
    .where('refused_version', 'is not', null)
  return (await rows.execute()).length
}

async function healed(what: string, index: number): Promise<void> {
  const { state } = world.sandbox(index)
  const secretOf = (id: string): string => (id === 'rotated' ? ROTATED_SECRET : givenSecretOf(id))
  await until(`the broker that ${what} has all again`, () => {
    const works = LIVE.every((id) => state.checkLogin(keyOf(id), secretOf(id)) === 'accepted')
    const narrow =
      state.aclProfiles.has('narrowed') && state.aclProfiles.members('narrowed', 'subscribeTopicExceptions')
    const isNarrow = JSON.stringify(narrow) === JSON.stringify(NARROW)
    return works && isNarrow && isEnabled(state, 'deleted') !== true ? true : null
  })
}

describe('while other brokers lose what they had', () => {
  it('one that lost nothing is worked on at once', () => {
    expect(healthyLogin).toBe('accepted')
  })

  it('nothing is forgotten of what was on a message VPN that is missing', () => {
    expect(ledgerDuring.length).toBeGreaterThan(0)
    expect(ledgerDuring).toEqual(ledgerBefore)
  })
})

describe('a broker that', () => {
  it.each(LOST)('$what: has all again, with the secrets and topics of today', ({ index }) => {
    const sandbox = world.sandbox(index)
    for (const id of LIVE) {
      const subscribe = sandbox.state.aclProfiles.members(id, 'subscribeTopicExceptions')
      expect(subscribe).toHaveLength(id === 'narrowed' ? 2 : 3)
      expect(sandbox.state.aclProfiles.get(id)?.subscribeTopicDefaultAction).toBe('disallow')
      expect(sandbox.state.queues.members(objectsOf(sandbox, id).queue, 'subscriptions')).toHaveLength(subscribe.length)
    }
    expect(isEnabled(sandbox.state, 'deleted')).not.toBe(true)
  })

  it.each(LOST.filter(({ index }) => ![1, 2, 6].includes(index)))('$what: keeps what is not ours', ({ index }) => {
    const { state } = world.sandbox(index)
    expect(state.checkLogin('legacy', LEGACY.password)).toBe('accepted')
  })
})

describe('after all', () => {
  it('no secret is anywhere but on its own username', () => world.expectSecretsInPlace())

  it('what was found is on record, and nothing is in conflict or left open', async () => {
    const drift = await world.mesh.drift()
    const kindsOf = (index: number): ReadonlySet<string> =>
      new Set(drift.filter(({ brokerId }) => brokerId === `broker-${index + 1}`).map(({ kind }) => kind))
    expect(kindsOf(0).size).toBe(0)
    expect(kindsOf(1)).toContain('missing')
    expect(kindsOf(3)).toContain('password')
    expect(kindsOf(3)).toContain('changed')
    expect(drift.filter(({ kind }) => kind === 'conflict')).toEqual([])
    expect(await world.mesh.drift({ openOnly: true })).toEqual([])
  })
})

describe('a backup from before a registration was deleted, and its grace period over', () => {
  it("brings back what is not ours any more: that is told, left alone, and in nobody else's way", async () => {
    await using running = await startRunningMesh({ brokers: 2, env: { KEYMESH_GRACE_PERIOD: '1s' } })
    const { mesh } = running
    await running.import(ordersPortal(running.brokers, [client('same'), client('deleted')]))
    await running.start()
    await running.settled([0, 1])
    const { state } = running.sandbox(0)
    const backup = backUp(state)
    await running.import({ registrations: [client('same')] }, { prune: true, confirmedDeletions: 1 })
    await until('all of it is gone', async () => {
      const rows = await mesh.context.db.selectFrom('ledger').select('name').execute()
      const isGone = !state.clientUsernames.has(keyOf('deleted')) && !state.aclProfiles.has('deleted')
      return isGone && !rows.some(({ name }) => name.includes('deleted')) ? true : null
    })
    restore(state, backup)
    const told = await until('a sweep tells of it', async () => {
      const query = mesh.context.db.selectFrom('broker_status').select('lookalikes').where('broker_id', '=', 'broker-1')
      const text = JSON.stringify((await query.executeTakeFirstOrThrow()).lookalikes)
      return text.includes(keyOf('deleted')) ? text : null
    })
    expect(JSON.parse(told)).toMatchObject({ count: 2 })
    await running.settled([0, 1])
    expect(state.clientUsernames.get(keyOf('deleted'))?.enabled).toBe(true)
    expect(state.checkLogin(keyOf('same'), givenSecretOf('same'))).toBe('accepted')
    expect(await mesh.drift({ openOnly: true })).toEqual([])
    await running.expectSecretsInPlace()
  }, 60_000)
})
