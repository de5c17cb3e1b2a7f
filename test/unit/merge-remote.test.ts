import { describe, expect, it } from 'vitest'
import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import type { RemoteCatalogue } from '../../src/domain/remote-catalogue.ts'
import { versionedId } from '../../src/store/import-changes.ts'
import type { CatalogueState, StoredRegistration } from '../../src/store/import-state.ts'
import { mergeRemote } from '../../src/store/merge-remote.ts'
import {
  accessRequest,
  eventApi,
  plan,
  product,
  productVersion,
  registration,
  suppliedCredential,
} from '../integration/import-fixtures.ts'

const NOTHING: RemoteCatalogue = {
  products: [],
  eventApis: [],
  applicationDomains: [],
  registrations: [],
  brokers: [],
  unread: [],
  documents: [],
  warnings: [],
}

const stored = ({ accessRequests, credentials, ...rest }: PortalRegistration): StoredRegistration => ({
  ...rest,
  isDeclared: false,
  accessRequests: new Map(
    accessRequests.map((each) => [
      each.id,
      { ...each, state: each.state ?? 'LIVE', approvedAtMs: 1, expiredAtMs: null },
    ]),
  ),
  credentials: new Map(
    credentials.map(({ name, consumerKey }) => [
      name,
      {
        id: `id-of-${consumerKey}`,
        name,
        consumerKey: consumerKey ?? '',
        sealedSecret: '',
        secretVersion: 1,
        expiresAtMs: null,
        isRetired: false,
      },
    ]),
  ),
})

/** `orders` 1.0.0 on `broker-1` with the plans gold and silver, and these registrations. */
function holding(...registrations: readonly PortalRegistration[]): CatalogueState {
  const orders = product('orders', { versions: [productVersion({ plans: [plan('gold'), plan('silver')] })] })
  return {
    accountId: 'default',
    environments: new Map(),
    eventMeshes: new Map(),
    applicationDomains: new Map(),
    brokers: new Map([['broker-1', {} as never]]),
    eventApis: new Map([[versionedId('orders-api', '1.0.0'), { ...eventApi('orders-api'), documentRevision: 'old' }]]),
    products: new Map([
      ['orders', { ...orders, versions: new Map(orders.versions.map((each) => [each.version, each])) }],
    ]),
    registrations: new Map(registrations.map((each) => [each.id, stored(each)])),
    secretVersions: new Map(),
  }
}

const merge = (current: CatalogueState, remote: Partial<RemoteCatalogue>) =>
  mergeRemote(current, { ...NOTHING, ...remote }, 'https://remote.example')

const app = (id: string, overrides: Partial<PortalRegistration> = {}) =>
  registration(id, { accessRequests: [accessRequest({ state: 'APPROVED' })], credentials: [], ...overrides })

describe('a remote catalogue beside what is stored', () => {
  it('keeps a plan that it lost while a request has it, and no other', () => {
    const remote = { products: [product('orders', { versions: [productVersion({ plans: [plan('bronze')] })] })] }
    const { file, warnings } = merge(holding(app('app-1')), { ...remote, registrations: [app('app-1')] })
    expect(file.products[0]?.versions[0]?.plans.map(({ id }) => id)).toEqual(['bronze', 'gold'])
    expect(warnings).toEqual([expect.stringContaining('has lost the plan gold, which an access request has')])
  })

  it('takes only brokers and Event APIs that are here', () => {
    const eventApis = ['orders-api', 'unheard-of'].map((id) => ({ id: eventApiId(id), version: '1.0.0' }))
    const version = productVersion({ eventApis, brokers: [brokerId('broker-1'), brokerId('elsewhere')] })
    const { file, warnings } = merge(holding(), { products: [product('orders', { versions: [version] })] })
    expect(file.products[0]?.versions[0]).toMatchObject({ brokers: ['broker-1'], eventApis: [{ id: 'orders-api' }] })
    expect(warnings).toEqual([expect.stringContaining('has the Event API unheard-of 1.0.0, which is not here')])
  })

  it.each([
    [
      'for a product that nobody can read',
      { productId: 'unheard-of' as never },
      /which cannot be read; it was left out/,
    ],
    ['on a plan that is not there', { planId: 'bronze' }, /on the plan bronze .* it was left out/],
  ])('leaves out a new access request %s', (_sentence, fields, warning) => {
    const request = accessRequest({ state: 'APPROVED', ...fields })
    const { file, warnings } = merge(holding(), { registrations: [app('app-1', { accessRequests: [request] })] })
    expect(file.registrations[0]?.accessRequests).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(warning)])
  })

  it('leaves out a new access request for a version that is retired, and keeps one that was there', () => {
    const retired = {
      products: [product('orders', { versions: [productVersion({ state: 'RETIRED', plans: [plan('gold')] })] })],
    }
    const isNew = merge(holding(), { ...retired, registrations: [app('app-1')] })
    expect(isNew.file.registrations[0]?.accessRequests).toEqual([])
    expect(isNew.warnings).toEqual([expect.stringContaining('which is RETIRED; it was left out')])
    const wasThere = merge(holding(app('app-1')), { ...retired, registrations: [app('app-1')] })
    expect(wasThere.file.registrations[0]?.accessRequests).toHaveLength(1)
    expect(wasThere.warnings).toEqual([])
  })

  it('says nothing of what is over anyway', () => {
    const request = accessRequest({ state: 'REVOKED', productId: 'unheard-of' as never })
    expect(merge(holding(), { registrations: [app('app-1', { accessRequests: [request] })] }).warnings).toEqual([])
  })

  it('withdraws a request that is revoked, also when its version cannot be read any more', () => {
    const request = accessRequest({ state: 'REVOKED', planId: 'vanished' })
    const { file } = merge(holding(app('app-1')), { registrations: [app('app-1', { accessRequests: [request] })] })
    expect(file.registrations[0]?.accessRequests).toMatchObject([{ state: 'REVOKED', planId: 'gold' }])
  })

  it.each([
    ['who has it', ['app-1', 'app-2'], 'app-2'],
    ['who comes first when nobody has it', ['app-3', 'app-1'], 'app-3'],
  ])('leaves a client username that is listed twice to %s', (_sentence, ids, holder) => {
    const credentials = [suppliedCredential('main', 'shared-key', 'a-secret-of-it')]
    const current = holding(app('app-2', { credentials }))
    const { file, warnings } = merge(current, { registrations: ids.map((id) => app(id, { credentials })) })
    expect(file.registrations.filter((each) => each.credentials.length > 0).map(({ id }) => id)).toEqual([holder])
    expect(warnings).toEqual([expect.stringContaining("is another registration's too")])
  })

  it('lets a client username move to another registration', () => {
    const credentials = [suppliedCredential('main', 'shared-key', 'a-secret-of-it')]
    const current = holding(app('app-1', { credentials }))
    const { file, warnings } = merge(current, { registrations: [app('app-1'), app('app-2', { credentials })] })
    expect(file.registrations.map((each) => each.credentials.length)).toEqual([0, 1])
    expect(warnings).toEqual([])
  })

  it('keeps a credential whose secret cannot be read, under its name, and makes none up', () => {
    const credentials = [suppliedCredential('main', 'key-number-1', 'a-secret-of-it')]
    const unread = [{ kind: 'credential', registrationId: 'app-1', consumerKey: 'key-number-1' } as const]
    const other = [suppliedCredential('main', 'key-number-2', 'another-secret')]
    const { file } = merge(holding(app('app-1', { credentials })), {
      registrations: [app('app-1', { credentials: other })],
      unread,
    })
    expect(file.registrations[0]?.credentials).toMatchObject([
      { name: 'main', consumerKey: 'key-number-1', consumerSecret: null },
      { name: 'main (key-number-2)', consumerKey: 'key-number-2' },
    ])
    const fresh = merge(holding(), { registrations: [app('app-1')], unread })
    expect(fresh.file.registrations[0]?.credentials).toEqual([])
  })

  it.each(['\u0000', '\ud800'])('leaves out what the database cannot store, and keeps what it has', (odd) => {
    const { file, warnings } = merge(holding(app('app-1', { name: 'One' })), {
      products: [product('orders', { description: odd })],
      registrations: [app('app-1', { name: odd })],
    })
    expect(file.products).toMatchObject([{ id: 'orders', description: '' }])
    expect(file.registrations).toMatchObject([{ id: 'app-1', name: 'One' }])
    expect(warnings).toHaveLength(2)
  })

  it('lets go only of what comes from the remote', () => {
    const current = holding(app('app-1'))
    const { file, removable } = merge(current, {})
    expect(file.products).toEqual([])
    expect([removable.brokers.size, removable.eventMeshes.size, removable.environments.size]).toEqual([0, 0, 0])
    expect([removable.products.size, removable.eventApis.size, removable.registrations.size]).toEqual([1, 1, 1])
  })
})
