import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ProductState } from '../../src/domain/catalogue.ts'
import { accessRequestId, brokerId, consumerKey, eventApiId, productId } from '../../src/domain/ids.ts'
import type { PortalProductVersion, PortalRegistration } from '../../src/domain/portal-file.ts'
import type { RemoteCatalogue, UnreadObject } from '../../src/domain/remote-catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import { ownedId, versionedId } from '../../src/store/import-changes.ts'
import { diffPortalFile } from '../../src/store/import-diff.ts'
import type {
  CatalogueState,
  StoredCredential,
  StoredProduct,
  StoredProductVersion,
  StoredRegistration,
} from '../../src/store/import-state.ts'
import { mergeRemote } from '../../src/store/merge-remote.ts'
import { eventApi, plan, product, productVersion, registration } from '../integration/import-fixtures.ts'

const VERSIONS = ['1.0.0', '2.0.0']
const PLANS = ['gold', 'silver']
const PRODUCTS = ['p1', 'p2', 'p3']
const REGISTRATIONS = ['r1', 'r2', 'r3']
const REQUESTS = ['q1', 'q2']
const KEYS = ['key-1', 'key-2', 'key-3', 'key-4']
const NAMES = ['main', 'other']
const BROKERS = ['b1', 'b2']
const EVENT_APIS = ['a1', 'a2']
const STATES: readonly Exclude<ProductState, 'DELETED'>[] = ['DRAFT', 'RELEASED', 'DEPRECATED', 'RETIRED']

const some = <Value>(values: readonly Value[], minLength = 0) => fc.subarray([...values], { minLength })
const oneOf = <Value>(values: readonly Value[]) => fc.constantFrom(...values)

const version = (number: string): fc.Arbitrary<PortalProductVersion> =>
  fc
    .record({ state: oneOf(STATES), plans: some(PLANS), brokers: some(BROKERS), eventApis: some(EVENT_APIS) })
    .map(({ state, plans, brokers, eventApis }) =>
      productVersion({
        version: number,
        state,
        plans: plans.map(plan),
        brokers: brokers.map(brokerId),
        eventApis: eventApis.map((id) => ({ id: eventApiId(id), version: '1.0.0' })),
      }),
    )
const versions = fc
  .tuple(some(VERSIONS, 1), ...VERSIONS.map(version))
  .map(([numbers, ...all]) => all.filter((each) => numbers.includes(each.version)))
const products = fc
  .tuple(some(PRODUCTS), ...PRODUCTS.map((id) => versions.map((list) => product(id, { versions: list }))))
  .map(([ids, ...all]) => all.filter(({ id }) => ids.includes(id)))

const request = (id: string) =>
  fc.record({ product: oneOf(PRODUCTS), version: oneOf(VERSIONS), plan: oneOf(PLANS) }).map((named) => ({
    id: accessRequestId(id),
    productId: productId(named.product),
    productVersion: named.version,
    planId: named.plan,
    filters: {},
    expiresAtMs: null,
  }))
const requests = fc
  .tuple(some(REQUESTS), ...REQUESTS.map(request))
  .map(([ids, ...all]) => all.filter(({ id }) => ids.includes(id)))

/** Registrations as the remote lists them; a key may be in several. */
const registrations = fc
  .tuple(
    some(REGISTRATIONS),
    ...REGISTRATIONS.map((id) =>
      fc
        .record({
          requests,
          states: fc.array(oneOf([null, 'APPROVED', 'PENDING_APPROVAL', 'REJECTED', 'REVOKED'] as const), {
            minLength: 2,
            maxLength: 2,
          }),
          keys: some(KEYS),
        })
        .map(({ requests: list, states, keys }) =>
          registration(id, {
            accessRequests: list.map((each, index) => ({
              ...each,
              productVersionIsDefault: false,
              state: states[index] ?? null,
            })),
            credentials: keys.map((key, index) => ({
              name: NAMES[index] ?? key,
              consumerKey: consumerKey(key),
              consumerSecret: new Secret('a-secret'),
              expiresAtMs: null,
            })),
          }),
        ),
    ),
  )
  .map(([ids, ...all]) => all.filter(({ id }) => ids.includes(id)))

const unread: fc.Arbitrary<UnreadObject> = fc.oneof(
  fc.record({ kind: fc.constant('product' as const), id: oneOf(PRODUCTS) }),
  fc.record({ kind: fc.constant('registration' as const), id: oneOf(REGISTRATIONS) }),
  fc.record({ kind: fc.constant('productVersion' as const), id: oneOf(PRODUCTS), version: oneOf(VERSIONS) }),
  fc.record({ kind: fc.constant('accessRequest' as const), registrationId: oneOf(REGISTRATIONS), id: oneOf(REQUESTS) }),
  fc.record({
    kind: fc.constant('credential' as const),
    registrationId: oneOf(REGISTRATIONS),
    consumerKey: oneOf(KEYS),
  }),
)

const remotes: fc.Arbitrary<RemoteCatalogue> = fc
  .record({ products, registrations, eventApis: some(EVENT_APIS), unread: fc.array(unread, { maxLength: 4 }) })
  .map((parts) => ({
    ...parts,
    eventApis: parts.eventApis.map((id) => eventApi(id, { applicationDomainId: null })),
    applicationDomains: [{ id: 'sales', name: 'Sales', description: '' }],
    brokers: [],
    documents: [],
    warnings: [],
  }))

/** What a store can hold: requests are for versions and plans that are there, a key has one live credential. */
const stored: fc.Arbitrary<CatalogueState> = fc
  .record({ products, registrations, deleted: fc.boolean(), eventApis: some(EVENT_APIS), brokers: some(BROKERS) })
  .map(({ products: list, registrations: clients, deleted, ...parts }) => {
    const isHere = (id: string) => parts.eventApis.includes(id)
    const kept = list.map((each) => ({
      ...each,
      versions: new Map<string, StoredProductVersion>(
        each.versions.map((item, index) => [
          item.version,
          {
            ...item,
            state: deleted && index === 0 ? 'DELETED' : item.state,
            eventApis: item.eventApis.filter(({ id }) => isHere(id)),
            brokers: item.brokers.filter((id) => parts.brokers.includes(id)),
          },
        ]),
      ),
    }))
    const taken = new Set<string>()
    const state: CatalogueState = {
      accountId: 'default',
      environments: new Map([['test', { id: 'test', name: 'Test' }]]),
      eventMeshes: new Map(),
      applicationDomains: new Map([['sales', { id: 'sales', name: 'Sales', description: '' }]]),
      brokers: new Map(parts.brokers.map((id) => [id, storedBroker(id)])),
      eventApis: new Map(
        parts.eventApis.map((id) => [versionedId(id, '1.0.0'), { ...eventApi(id), documentRevision: 'old' }]),
      ),
      products: new Map(kept.map((each) => [each.id, each])),
      registrations: new Map(clients.map((each) => [each.id, storedRegistration(each, kept, taken)])),
      secretVersions: new Map(KEYS.map((key) => [key, 1])),
    }
    return state
  })

function storedRegistration(
  { credentials, accessRequests, ...rest }: PortalRegistration,
  kept: readonly StoredProduct[],
  taken: Set<string>,
): StoredRegistration {
  const requestsOf = accessRequests.filter(({ productId: id, productVersion: number, planId }) => {
    const named = kept.find((each) => each.id === id)?.versions.get(number)
    return named?.plans.some((each) => each.id === planId) === true
  })
  const credentialsOf = credentials.flatMap(({ name, consumerKey: key }) => {
    if (key === null || taken.has(key)) return []
    taken.add(key)
    return [storedCredential(name, key)]
  })
  return {
    ...rest,
    isDeclared: false,
    accessRequests: new Map(
      requestsOf.map((each) => [each.id, { ...each, state: each.state ?? 'LIVE', approvedAtMs: 1, expiredAtMs: null }]),
    ),
    credentials: new Map(credentialsOf.map((each) => [each.name, each])),
  }
}

const storedCredential = (name: string, key: string): StoredCredential => ({
  id: `id-of-${key}`,
  name,
  consumerKey: key,
  sealedSecret: '',
  secretVersion: 1,
  expiresAtMs: null,
  isRetired: false,
})
const storedBroker = (id: string) => ({
  id,
  name: id,
  kind: 'solace' as const,
  eventMeshId: null,
  management: null,
  messaging: null,
  policy: {} as never,
  managementAddress: null,
  sealedPassword: null,
  passwordVersion: 0,
  ownedObjects: 3,
})

function planOf(current: CatalogueState, remote: RemoteCatalogue) {
  const merged = mergeRemote(current, remote, 'https://remote.example')
  const plan = diffPortalFile(current, merged.file, {
    prune: true,
    removable: merged.removable,
    authoritative: true,
    nowMs: 1,
    differingSecrets: { brokers: new Set(), credentials: new Set() },
    takenAddresses: new Set(),
  })
  return { merged, plan }
}

const nameOf = (object: UnreadObject): string => {
  switch (object.kind) {
    case 'productVersion':
      return `productVersion ${versionedId(object.id, object.version)}`
    case 'accessRequest':
      return `accessRequest ${ownedId(object.registrationId, object.id)}`
    case 'credential':
      return `credential ${object.registrationId} ${object.consumerKey}`
    default:
      return `${object.kind} ${object.id}`
  }
}

/** Versions in state DELETED stay for their requests only. */
function isDeletedAlready(current: CatalogueState, kind: string, id: string): boolean {
  const [owner = '', number] = id.split('@')
  const list = [...(current.products.get(owner)?.versions.values() ?? [])]
  if (kind === 'product') return list.every(({ state }) => state === 'DELETED')
  return kind === 'productVersion' && list.some((each) => each.version === number && each.state === 'DELETED')
}

describe('a remote catalogue, whatever it and the store hold', () => {
  it('can always be imported', () => {
    fc.assert(
      fc.property(stored, remotes, (current, remote) => {
        expect(planOf(current, remote).plan.problems).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it('removes nothing that was listed and could not be read, and nothing that is declared here', () => {
    fc.assert(
      fc.property(stored, remotes, (current, remote) => {
        const { plan } = planOf(current, remote)
        const left = new Set(remote.unread.map(nameOf))
        for (const { kind, id } of plan.changes.filter(({ type }) => type === 'delete')) {
          expect(['broker', 'eventMesh', 'environment']).not.toContain(kind)
          if (isDeletedAlready(current, kind, id)) continue
          expect(left).not.toContain(`${kind} ${id}`)
          // Nor a part of what could not be read.
          const [owner = ''] = id.split(/[@/]/)
          if (kind === 'productVersion') expect(left).not.toContain(`product ${owner}`)
          if (kind === 'accessRequest' || kind === 'credential') expect(left).not.toContain(`registration ${owner}`)
          if (kind !== 'credential') continue
          const name = id.slice(owner.length + 1)
          const credential = current.registrations.get(owner)?.credentials.get(name)
          // One that gives its name to another is not removed but renamed.
          const isKept = plan.writes.newCredentials.some(({ consumerKey: key }) => key === credential?.consumerKey)
          if (!isKept) expect(left).not.toContain(`credential ${owner} ${credential?.consumerKey}`)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('never makes up a secret, and gives a client username to one client', () => {
    fc.assert(
      fc.property(stored, remotes, (current, remote) => {
        const { plan } = planOf(current, remote)
        const keys = plan.writes.newCredentials.map(({ consumerKey: key }) => key)
        expect(new Set(keys).size).toBe(keys.length)
        expect(
          plan.writes.newCredentials.filter(({ secret, consumerKey: key }) => secret === null || key === null),
        ).toEqual([])
      }),
      { numRuns: 500 },
    )
  })

  it('names only brokers and Event APIs that are here', () => {
    fc.assert(
      fc.property(stored, remotes, (current, remote) => {
        const { plan } = planOf(current, remote)
        const eventApis = new Set([
          ...current.eventApis.keys(),
          ...remote.eventApis.map(({ id }) => versionedId(id, '1.0.0')),
        ])
        const removed = new Set(plan.removals.eventApis.map(({ id, version: number }) => versionedId(id, number)))
        for (const { version: written } of plan.writes.productVersions) {
          expect(written.brokers.filter((id) => !current.brokers.has(id))).toEqual([])
          const named = written.eventApis.map(({ id, version: number }) => versionedId(id, number))
          expect(named.filter((key) => !eventApis.has(key) || removed.has(key))).toEqual([])
        }
      }),
      { numRuns: 500 },
    )
  })
})
