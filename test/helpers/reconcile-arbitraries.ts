import fc from 'fast-check'
import { MEMBERS_OF, type ObjectRef, objectKey } from '../../src/domain/broker-object.ts'
import type { BrokerPolicy, Channel, ClassOfServicePolicy, Protocol } from '../../src/domain/catalogue.ts'
import { PROTOCOLS } from '../../src/domain/catalogue.ts'
import { accessRequestId, consumerKey, eventApiId } from '../../src/domain/ids.ts'
import { aclProfileName } from '../../src/domain/names.ts'
import type {
  CountedAccessRequest,
  Filters,
  LiveCredential,
  RegistrationOnBroker,
} from '../../src/domain/registration.ts'
import type { FakeBroker } from './fake-broker.ts'
import { NOW_MS, PAIR, registrationOf } from './sample.ts'

const CITIES = ['bern', 'ulm', 'aachen'] as const
const PARAMETERS = ['city', 'line'] as const

const filters: fc.Arbitrary<Filters> = fc
  .record(
    {
      city: fc.subarray([...CITIES, 'aa*'], { minLength: 1 }),
      line: fc.subarray(['7', '12', '9*'], { minLength: 1 }),
    },
    { requiredKeys: [] },
  )
  .map((record) => ({ ...record }))

const channel: fc.Arbitrary<Channel> = fc.record({
  name: fc.constantFrom(
    'parcel/{city}/scanned',
    'train/{line}/stop/{city}',
    'depot/opened',
    'line{line}/late',
    '{city}',
  ),
  clientMayPublish: fc.boolean(),
  clientMaySubscribe: fc.boolean(),
  parameterEnums: fc
    .option(fc.subarray([...CITIES], { minLength: 1 }), { nil: undefined })
    .map((city): Channel['parameterEnums'] => (city === undefined ? {} : { city })),
})

const eventApi = fc.record({
  id: fc.constantFrom('parcels', 'trains', 'depots').map(eventApiId),
  channels: fc.array(channel, { maxLength: 3 }),
})

const classOfService: fc.Arbitrary<ClassOfServicePolicy> = fc.record({
  messageDeliveryMode: fc.constantFrom('direct' as const, 'guaranteed' as const),
  accessType: fc.constantFrom('exclusive' as const, 'non-exclusive' as const),
  queueType: fc.constantFrom('combined' as const, 'single' as const),
  maximumTimeToLive: fc.constantFrom(-1, 0, 60, 86_400),
  maxMsgSpoolUsage: fc.constantFrom(1, 200),
})

const accessRequest: fc.Arbitrary<CountedAccessRequest> = fc.record({
  id: fc.constantFrom('request-1', 'request-2', 'request-3', 'request-4').map(accessRequestId),
  filters,
  classOfServicePolicy: classOfService,
  queueNonce: fc.constantFrom('n0nce-1', 'n0nce-2'),
  // Two versions of one Event API may both be there.
  eventApis: fc.array(eventApi, { minLength: 1, maxLength: 3 }),
})

export const KEYS = ['alpha-key', 'beta-key', 'gamma-key'] as const

const credential: fc.Arbitrary<LiveCredential> = fc.record({
  consumerKey: fc.constantFrom(...KEYS).map(consumerKey),
  version: fc.integer({ min: 1, max: 3 }),
  issuedAtMs: fc.integer({ min: 0, max: 3 }).map((hours) => NOW_MS - hours * 3_600_000),
})

/** A registration as the store knows it on one broker; at least one access request unless told otherwise. */
export const registration = (minAccessRequests = 1): fc.Arbitrary<RegistrationOnBroker> =>
  fc
    .record({
      filters,
      accessRequests: fc.uniqueArray(accessRequest, {
        minLength: minAccessRequests,
        maxLength: 3,
        selector: ({ id }) => id,
      }),
      credentials: fc.uniqueArray(credential, { maxLength: 3, selector: (each) => each.consumerKey }),
    })
    .map((content) => registrationOf(PAIR, content))

export const protocols: fc.Arbitrary<readonly Protocol[]> = fc.subarray([...PROTOCOLS])

/** One thing that somebody did at the broker; `pick` chooses among the objects that are there. */
export interface Tampering {
  readonly type: 'drop' | 'change' | 'add-member' | 'remove-member'
  readonly pick: number
}

const tampering: fc.Arbitrary<Tampering> = fc.record({
  type: fc.constantFrom('drop' as const, 'change' as const, 'add-member' as const, 'remove-member' as const),
  pick: fc.nat(1000),
})

/** What a registration was when the broker was last in step, what it is now, and what happened in between. */
export interface Scenario {
  readonly before: RegistrationOnBroker | null
  readonly after: RegistrationOnBroker
  readonly protocols: readonly Protocol[]
  readonly queuePermission: BrokerPolicy['queuePermission']
  readonly sempVersion: '2.19' | '2.30' | '2.49'
  /** Objects of somebody else; some have names that the registration wants. */
  readonly foreign: readonly ObjectRef[]
  /** True when they came after the first run. */
  readonly foreignCameLater: boolean
  readonly tampering: readonly Tampering[]
  /** The write of the first run after which the broker answers no more. */
  readonly cutAfterWrites: number | null
  readonly elapsedMs: number
}

const foreign: fc.Arbitrary<readonly ObjectRef[]> = fc.subarray<ObjectRef>([
  { kind: 'clientUsername', name: KEYS[0] },
  { kind: 'clientUsername', name: 'somebody' },
  { kind: 'aclProfile', name: 'somebody' },
  { kind: 'aclProfile', name: aclProfileName(PAIR.registrationId) },
  { kind: 'queue', name: 'orders' },
  { kind: 'queue', name: 'keymesh-of-somebody' },
  { kind: 'clientProfile', name: 'keymesh-direct' },
])

/** The versions of a client username only grow. */
function grown({ before, after }: Pick<Scenario, 'before' | 'after'>): RegistrationOnBroker {
  const former = new Map(before?.credentials.map(({ consumerKey, version }) => [consumerKey, version]))
  const credentials = after.credentials.map((each) => ({
    ...each,
    version: Math.max(each.version, former.get(each.consumerKey) ?? 0),
  }))
  return { ...after, credentials }
}

const anyScenario: fc.Arbitrary<Scenario> = fc.record({
  before: fc.option(registration(), { freq: 4 }),
  after: registration(0),
  protocols,
  queuePermission: fc.constantFrom('no-access' as const, 'consume' as const),
  sempVersion: fc.constantFrom('2.19' as const, '2.30' as const, '2.49' as const),
  foreign: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: foreign }),
  foreignCameLater: fc.boolean(),
  tampering: fc.array(tampering, { maxLength: 4 }),
  cutAfterWrites: fc.option(fc.nat(12), { freq: 1 }),
  elapsedMs: fc.constantFrom(0, 3_600_000, 10 * 86_400_000),
})

export const scenario = anyScenario.map((story) => ({ ...story, after: grown(story) }))

/** Objects that are not the broker's own. */
export function objectsOn(broker: FakeBroker): readonly ObjectRef[] {
  return broker.keys().flatMap((key): ObjectRef[] => {
    const [kind = '', ...rest] = key.split('/')
    const name = rest.join('/')
    if (name === 'default') return []
    return kind === 'clientProfile' || kind === 'aclProfile' || kind === 'clientUsername' || kind === 'queue'
      ? [{ kind, name }]
      : []
  })
}

/** Does what a person at the broker could have done to the objects that are not `spared`. */
export function tamper(broker: FakeBroker, { type, pick }: Tampering, spared: ReadonlySet<string>): void {
  const objects = objectsOn(broker).filter((ref) => !spared.has(objectKey(ref)))
  const ref = objects[pick % Math.max(1, objects.length)]
  if (ref === undefined) return
  const memberKinds = MEMBERS_OF[ref.kind]
  const memberKind = memberKinds[pick % Math.max(1, memberKinds.length)]
  const object = broker.peek(ref)
  if (object === undefined) return
  switch (type) {
    case 'drop':
      broker.drop(ref)
      return
    case 'change':
      broker.tamper(ref, CHANGES[ref.kind][pick % CHANGES[ref.kind].length] ?? {})
      return
    case 'add-member': {
      if (memberKind === undefined) return
      const members = { ...object.members, [memberKind]: [...(object.members[memberKind] ?? []), `extra/${pick % 3}`] }
      broker.put({ ...object, members }, broker.passwords.get(ref.name))
      return
    }
    case 'remove-member': {
      if (memberKind === undefined) return
      const members = { ...object.members, [memberKind]: (object.members[memberKind] ?? []).slice(1) }
      broker.put({ ...object, members }, broker.passwords.get(ref.name))
      return
    }
    default: {
      throw new TypeError(type satisfies never)
    }
  }
}

const CHANGES = {
  clientProfile: [{ allowGuaranteedMsgSendEnabled: true, allowBridgeConnectionsEnabled: true }],
  aclProfile: [{ publishTopicDefaultAction: 'allow' }, { clientConnectDefaultAction: 'disallow' }],
  clientUsername: [
    { enabled: false },
    { enabled: true },
    { aclProfileName: 'default' },
    { clientProfileName: 'default' },
  ],
  queue: [{ egressEnabled: false }, { owner: 'somebody' }, { permission: 'delete' }, { maxTtl: 7 }],
} as const

/** The same registration in another order of everything that has none. */
export function shuffledRegistration(input: RegistrationOnBroker): fc.Arbitrary<RegistrationOnBroker> {
  const requests = input.accessRequests.map((request) =>
    fc
      .record({
        filters: shuffledFilters(request.filters),
        eventApis: fc
          .tuple(...request.eventApis.map((api) => shuffled(api.channels).map((channels) => ({ ...api, channels }))))
          .chain(shuffled),
      })
      .map((content): CountedAccessRequest => ({ ...request, ...content })),
  )
  return fc
    .record({
      filters: shuffledFilters(input.filters),
      accessRequests: fc.tuple(...requests).chain(shuffled),
      credentials: shuffled(input.credentials),
    })
    .map((content) => ({ ...input, ...content }))
}

export const shuffled = <Item>(items: readonly Item[]): fc.Arbitrary<Item[]> =>
  fc.shuffledSubarray([...items], { minLength: items.length })

const shuffledFilters = (input: Filters): fc.Arbitrary<Filters> =>
  shuffled(PARAMETERS.filter((name) => input[name] !== undefined)).chain((names) =>
    fc
      .tuple(...names.map((name) => shuffled(input[name] ?? [])))
      .map((lists) => Object.fromEntries(names.map((name, index) => [name, lists[index] ?? []]))),
  )
