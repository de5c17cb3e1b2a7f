import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SweepResult } from '../../src/reconcile/sweep.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { FULL_PAGES } from '../../src/sandbox/semp-paging.ts'
import type { ImportResult } from '../../src/store/import-portal-file.ts'
import { EXAMPLE_SANDBOX, exampleCatalogue, type TestMesh, withMesh } from '../helpers/mesh.ts'

/** What a client of one registration may do on one broker, written by hand from `examples`. */
interface Expected {
  readonly broker: string
  readonly aclProfile: string | RegExp
  readonly clientProfile: string
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  readonly queues: readonly ExpectedQueue[]
}

interface ExpectedQueue {
  readonly owner: string | null
  readonly accessType: 'exclusive' | 'non-exclusive'
  readonly maxTtl: number
  readonly maxMsgSpoolUsage: number
  readonly subscriptions: readonly string[]
}

const POSITIONS = ['rail/position/central/*', 'rail/position/north/*', 'rail/position/south/*']
const DISRUPTIONS = [
  'rail/disruption/line-*/cancellation',
  'rail/disruption/line-*/delay',
  'rail/disruption/line-*/information',
  'rail/disruption/summary',
]

/** By consumer key where the catalogue gives one, else by registration. */
const EXPECTED: Readonly<Record<string, Expected>> = {
  'journey-planner': {
    broker: 'central',
    aclProfile: 'journey-planner',
    clientProfile: 'keymesh-direct',
    publish: [],
    subscribe: [...DISRUPTIONS, ...POSITIONS],
    queues: [],
  },
  'travel-widget': {
    broker: 'north',
    aclProfile: 'travel-widget',
    clientProfile: 'keymesh-direct',
    publish: [],
    subscribe: POSITIONS,
    queues: [],
  },
  'northern-departure-boards': {
    broker: 'south',
    aclProfile: 'northern-departure-boards',
    // Its clients speak MQTT there, which creates endpoints of its own.
    clientProfile: 'keymesh-send-receive-create',
    publish: [
      'rail/platform/HBR/*/fault/network',
      'rail/platform/HBR/*/fault/panel',
      'rail/platform/HBR/*/fault/power',
      'rail/platform/HBR/*/shown',
      'rail/platform/HIL/*/fault/network',
      'rail/platform/HIL/*/fault/panel',
      'rail/platform/HIL/*/fault/power',
      'rail/platform/HIL/*/shown',
    ],
    subscribe: [
      'rail/disruption/line-*/cancellation',
      'rail/disruption/line-*/delay',
      'rail/disruption/summary',
      'rail/platform/HBR/*/departures',
      'rail/platform/HIL/*/departures',
    ],
    queues: [
      {
        owner: 'northern-boards-01',
        accessType: 'non-exclusive',
        maxTtl: 600,
        maxMsgSpoolUsage: 50,
        subscriptions: [
          'rail/disruption/line-*/cancellation',
          'rail/disruption/line-*/delay',
          'rail/disruption/summary',
        ],
      },
      {
        owner: 'northern-boards-01',
        accessType: 'non-exclusive',
        maxTtl: 600,
        maxMsgSpoolUsage: 50,
        subscriptions: ['rail/platform/HBR/*/departures', 'rail/platform/HIL/*/departures'],
      },
    ],
  },
  // The document says `x-view: provider`: what it publishes is what clients subscribe to.
  'crew-app-harbour': {
    broker: 'central',
    aclProfile: 'crew-app-harbour',
    clientProfile: 'keymesh-send-receive',
    publish: ['crew/duty/harbour/driver/answered', 'crew/duty/harbour/guard/answered'],
    subscribe: ['crew/duty/harbour/driver/assigned', 'crew/duty/harbour/guard/assigned'],
    queues: [
      {
        // Both credentials came at once: the first by name owns.
        owner: 'crew-app-harbour-1',
        accessType: 'exclusive',
        maxTtl: 86_400,
        maxMsgSpoolUsage: 20,
        subscriptions: ['crew/duty/harbour/driver/assigned', 'crew/duty/harbour/guard/assigned'],
      },
    ],
  },
  'freight-customer-baltic-timber-and-paper': {
    broker: 'north',
    aclProfile: /^~[a-z2-7]{26}$/,
    clientProfile: 'keymesh-send-receive-create',
    publish: ['freight/booking/balticTimber/requested'],
    subscribe: ['freight/booking/balticTimber/confirmed', 'freight/booking/balticTimber/refused'],
    queues: [
      {
        owner: 'baltic-timber-01',
        accessType: 'exclusive',
        maxTtl: 0,
        maxMsgSpoolUsage: 0,
        subscriptions: ['freight/booking/balticTimber/confirmed', 'freight/booking/balticTimber/refused'],
      },
    ],
  },
  // On the central broker only one of its two products is offered, which nobody publishes to.
  'freight-customer-harbour-steel': {
    broker: 'central',
    aclProfile: 'freight-customer-harbour-steel',
    clientProfile: 'keymesh-receive',
    publish: [],
    subscribe: [
      'rail/disruption/line-F*/cancellation',
      'rail/disruption/line-F*/delay',
      'rail/disruption/line-S1/cancellation',
      'rail/disruption/line-S1/delay',
      'rail/disruption/line-S2/cancellation',
      'rail/disruption/line-S2/delay',
      'rail/disruption/summary',
      'rail/position/south/*',
    ],
    queues: [
      {
        owner: null,
        accessType: 'exclusive',
        maxTtl: 3600,
        maxMsgSpoolUsage: 200,
        subscriptions: [
          'rail/disruption/line-F*/cancellation',
          'rail/disruption/line-F*/delay',
          'rail/disruption/line-S1/cancellation',
          'rail/disruption/line-S1/delay',
          'rail/disruption/line-S2/cancellation',
          'rail/disruption/line-S2/delay',
          'rail/disruption/summary',
          'rail/position/south/*',
        ],
      },
    ],
  },
  // Two products, one plan direct: the queue holds the topics of the other only.
  'control-room-wall': {
    broker: 'north',
    aclProfile: 'control-room-wall',
    clientProfile: 'keymesh-receive-create',
    publish: [
      'rail/platform/*/*/fault/network',
      'rail/platform/*/*/fault/panel',
      'rail/platform/*/*/fault/power',
      'rail/platform/*/*/shown',
    ],
    subscribe: [...DISRUPTIONS, 'rail/platform/*/*/departures', ...POSITIONS],
    queues: [
      {
        owner: null,
        accessType: 'exclusive',
        maxTtl: 3600,
        maxMsgSpoolUsage: 200,
        subscriptions: [...DISRUPTIONS, ...POSITIONS],
      },
    ],
  },
}

const BROKERS = ['north', 'central', 'south']
/** Registrations on each broker, as the product versions associate them. */
const REGISTRATIONS_ON = [
  ['control-room-wall', 'north', 'central', 'south'],
  ['crew-app-harbour', 'central'],
  ['freight-customer-baltic-timber-and-paper', 'north', 'south'],
  ['freight-customer-harbour-steel', 'north', 'central', 'south'],
  ['journey-planner', 'north', 'central', 'south'],
  ['northern-departure-boards', 'north', 'central', 'south'],
  ['travel-widget', 'north', 'central'],
] as const

let mesh: TestMesh
let imported: ImportResult
let first: readonly SweepResult[]

beforeAll(async () => {
  mesh = await withMesh({ brokers: 3, sandbox: { ...EXAMPLE_SANDBOX, paging: FULL_PAGES } })
  imported = await mesh.import(await exampleCatalogue(mesh.sandbox))
  first = await mesh.sweepAll()
})
afterAll(async () => mesh[Symbol.asyncDispose]())

const sandboxOf = (broker: string): SandboxBroker => mesh.broker(BROKERS.indexOf(broker))

/** Consumer keys of a registration. */
async function keysOf(registration: string): Promise<readonly string[]> {
  const rows = await mesh.context.db
    .selectFrom('credentials')
    .select('consumer_key')
    .where('registration_id', '=', registration)
    .orderBy('consumer_key')
    .execute()
  return rows.map((row) => row.consumer_key)
}

describe('the main job, with the sample catalogue', () => {
  it('brings every registration in sync on every broker of its products', async () => {
    expect(imported.raised.length).toBeGreaterThanOrEqual(REGISTRATIONS_ON.length)
    expect(first.map(({ failed, waiting, busy }) => failed + waiting + busy)).toEqual([0, 0, 0])
    const pairs = await mesh.pairs()
    const expected = REGISTRATIONS_ON.flatMap(([registration, ...brokers]) =>
      brokers.toSorted().map((broker) => ({ registration, broker, state: 'in-sync', reason: null })),
    )
    expect(pairs.map(({ registration, broker, state, reason }) => ({ registration, broker, state, reason }))).toEqual(
      expected,
    )
    for (const { generation, reached } of pairs) expect(reached).toBe(generation)
    expect(await mesh.drift()).toEqual([])
  })

  it('makes approved access requests LIVE, and leaves the one that waits for approval', async () => {
    const rows = await mesh.context.db.selectFrom('access_requests').select(['id', 'state']).orderBy('id').execute()
    expect(Object.fromEntries(rows.map(({ id, state }) => [id, state]))).toEqual({
      'baltic-paths': 'LIVE',
      'boards-north': 'LIVE',
      'crew-app-duties': 'LIVE',
      'crew-app-junction': 'PENDING_APPROVAL',
      'harbour-steel-delays': 'LIVE',
      'harbour-steel-paths': 'LIVE',
      'journey-planner-live': 'LIVE',
      'travel-widget-live': 'LIVE',
      'wall-live': 'LIVE',
      'wall-stations': 'LIVE',
    })
  })

  it('writes exactly the stored secrets, each on exactly the brokers of its registration', async () => {
    const secrets = await mesh.secrets()
    for (const broker of BROKERS) {
      const { state } = sandboxOf(broker)
      const here = REGISTRATIONS_ON.filter(([, ...brokers]) => brokers.some((each) => each === broker))
      const keys = (await Promise.all(here.map(([registration]) => keysOf(registration)))).flat()
      expect(state.clientUsernames.names().filter((name) => !/^#|^default$/.test(name))).toEqual(keys.toSorted())
      for (const key of keys) {
        const secret = secrets.get(key)
        // Compared without being printed.
        expect(secret !== undefined && secret !== '' && state.passwordOf(key) === secret, `${key} on ${broker}`).toBe(
          true,
        )
      }
    }
    expect(new Set(secrets.values()).size).toBe(secrets.size)
  })

  it.each(Object.entries(EXPECTED))('%s may do on a broker what its documents say', async (registration, expected) => {
    const { state } = sandboxOf(expected.broker)
    const keys = await keysOf(registration)
    const usernames = keys.map((key) => state.clientUsernames.get(key))
    const [aclProfile] = usernames.map((values) => String(values?.aclProfileName))
    if (aclProfile === undefined) throw new Error(`${registration} has no credential`)
    if (typeof expected.aclProfile === 'string') expect(aclProfile).toBe(expected.aclProfile)
    else expect(aclProfile).toMatch(expected.aclProfile)
    for (const values of usernames) {
      expect(values).toMatchObject({
        enabled: true,
        aclProfileName: aclProfile,
        clientProfileName: expected.clientProfile,
        guaranteedEndpointPermissionOverrideEnabled: false,
        subscriptionManagerEnabled: false,
      })
    }
    expect(state.aclProfiles.get(aclProfile)).toMatchObject({
      clientConnectDefaultAction: 'allow',
      publishTopicDefaultAction: 'disallow',
      subscribeTopicDefaultAction: 'disallow',
    })
    const smf = (topics: readonly string[]) => topics.map((topic) => `smf,${topic}`)
    expect(state.aclProfiles.members(aclProfile, 'publishTopicExceptions')).toEqual(smf(expected.publish))
    expect(state.aclProfiles.members(aclProfile, 'subscribeTopicExceptions')).toEqual(smf(expected.subscribe))

    const names = state.queues.names().filter((name) => keys.includes(String(state.queues.get(name)?.owner)))
    for (const name of names) {
      expect(name).toMatch(/^keymesh-[a-z2-7]{26}$/)
      expect(state.queues.get(name)).toMatchObject({
        permission: 'no-access',
        ingressEnabled: true,
        egressEnabled: true,
      })
    }
    const queues = names.map((name) => {
      const { accessType, maxTtl, maxMsgSpoolUsage, respectTtlEnabled, owner } = state.queues.get(name) ?? {}
      const subscriptions = state.queues.members(name, 'subscriptions')
      return { accessType, maxTtl, maxMsgSpoolUsage, respectTtlEnabled, owner, subscriptions }
    })
    expect(queues.toSorted(byFirstSubscription)).toEqual(
      expected.queues.map((queue) => ({
        ...queue,
        owner: queue.owner ?? keys[0],
        respectTtlEnabled: queue.maxTtl > 0,
      })),
    )
  })

  it('creates only the shared client profiles that somebody needs', () => {
    const profiles = BROKERS.map((broker) =>
      sandboxOf(broker)
        .state.clientProfiles.names()
        .filter((name) => name.startsWith('keymesh-')),
    )
    expect(profiles).toEqual([
      ['keymesh-direct', 'keymesh-receive-create', 'keymesh-send-receive-create'],
      ['keymesh-direct', 'keymesh-receive', 'keymesh-send-receive'],
      ['keymesh-direct', 'keymesh-receive-create', 'keymesh-send-receive-create'],
    ])
  })
})

describe('right after a run', () => {
  it('a second plan is empty, and a second sweep writes nothing', async () => {
    for (const { requests } of mesh.sandbox.brokers) requests.reset()
    for (const index of BROKERS.keys()) expect(await mesh.plans(index)).toEqual([])
    const second = await mesh.sweepAll()
    expect(mesh.writes()).toBe(0)
    expect(second.map(({ changed, waiting, busy, failed }) => changed + waiting + busy + failed)).toEqual([0, 0, 0])
    expect(second.map(({ compared }) => compared)).toEqual([6, 6, 5])
  })

  it('an import of the same file changes nothing', async () => {
    const again = await mesh.import({}, { prune: true })
    expect(again).toEqual({ changes: [], raised: [] })
  })

  it.each(BROKERS)('a sweep of broker %s reads lists and child lists, and nothing else', async (name) => {
    const { requests, state } = sandboxOf(name)
    // A process of its own: nothing was read on this connection before.
    const context = await mesh.another(`sweeper-${name}`)
    const ours = await mesh.context.db
      .selectFrom('ledger')
      .select(['kind', 'name'])
      .where('broker_id', '=', name)
      .execute()
    const count = (kind: string) => ours.filter((row) => row.kind === kind).length
    requests.reset()
    requests.keepLog(1000)
    await context.engine.sweep(mesh.key(BROKERS.indexOf(name)), { trigger: 'sweep' })

    const { 'get about': about, 'get msgVpns': msgVpns, ...rest } = requests.snapshot().byOperation
    expect(rest).toEqual({
      'list clientProfiles': 1,
      'list aclProfiles': 1,
      'list clientUsernames': 1,
      'list queues': 1,
      'list publishTopicExceptions': count('aclProfile'),
      'list subscribeTopicExceptions': count('aclProfile'),
      'list subscriptions': count('queue'),
    })
    // Once, and once more when the first answer is a second old by the time that it is asked for again.
    expect(about).toBe(msgVpns)
    expect([1, 2]).toContain(about)
    expect(count('aclProfile')).toBe(state.aclProfiles.names().filter((each) => !/^#|^default$/.test(each)).length)
    for (const { target } of requests.log.filter(
      (request) => !/select=(sempVersion|enabled,auth)/.test(request.target),
    )) {
      expect(target).toMatch(/[?&]select=/)
      expect(target).toMatch(/[?&]count=100(&|$)/)
    }
  })
})

function byFirstSubscription(a: { readonly subscriptions: readonly string[] }, b: typeof a): number {
  return String(a.subscriptions[0]) < String(b.subscriptions[0]) ? -1 : 1
}
