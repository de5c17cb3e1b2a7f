import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { brokerId } from '../../src/domain/ids.ts'
import type { PortalFile, PortalProduct } from '../../src/domain/portal-file.ts'
import { withinPatience } from '../../src/store/bounded-filter.ts'
import { explainProduct } from '../../src/store/explain-product.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import {
  broker1,
  catalogue,
  describedCalls,
  GATEWAYS,
  importCatalogue,
  type ListBody,
  ordersApi,
  PRODUCTS,
  version,
  visible,
} from './http-catalogue-fixtures.ts'
import { plan } from './import-fixtures.ts'

let api: TestApi
const { call, idsOf, problems, isDescribed } = describedCalls(() => api)

beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('a visible product', () => {
  beforeAll(() =>
    importCatalogue(
      api.db,
      catalogue({
        products: [
          visible('orders', {
            name: 'Order events',
            description: 'All about orders.',
            attributes: [{ name: 'color', value: 'Blue' }],
            versions: [version({ customAttributes: [{ name: 'team', value: 'sales' }] })],
          }),
        ],
      }),
    ),
  )

  it('is shown with all its fields, both names of the vendor’s among them', async () => {
    const { status, headers, body } = await call<{ data: Record<string, unknown> }>('GET', `${PRODUCTS}/orders`)
    const { createdTime, updatedTime, ...product } = body.data
    const policy = (id: string) => ({
      id,
      messageDeliveryMode: 'guaranteed',
      accessType: 'exclusive',
      queueType: 'combined',
      maximumTimeToLive: 0,
      maxMsgSpoolUsage: 500,
    })
    const planOf = (id: string, name: string) => ({
      id,
      name,
      solaceClassOfServicePolicy: policy(id),
      vendorClassOfServicePolicy: policy(id),
    })
    const service = {
      id: 'broker1',
      messagingServiceId: 'broker1',
      messagingServiceName: 'Broker One',
      solaceCloudMessagingServiceId: 'broker1',
      vendorCloudMessagingServiceId: 'broker1',
      supportedProtocols: ['smfs', 'secure-mqtt'],
      environmentName: 'Production',
      eventMeshName: 'Mesh',
    }
    expect([status, typeof headers.etag]).toEqual([200, 'string'])
    expect(product).toEqual({
      id: 'orders',
      name: 'Order events',
      displayName: 'Orders',
      description: 'All about orders.',
      version: '1.0.0',
      state: 'RELEASED',
      applicationDomainId: 'sales',
      applicationDomainName: 'Sales',
      approvalType: 'automatic',
      brokerType: 'solace',
      createdBy: 'keymesh',
      changedBy: 'keymesh',
      plans: [planOf('gold', 'gold'), planOf('silver', 'Silver')],
      apis: [
        {
          id: 'ordersApi',
          name: 'Orders API',
          displayName: 'Orders, all of them',
          description: 'What happens to orders.',
          version: '1.0.0',
          customAttributes: [{ name: 'owner', value: 'sales' }],
        },
      ],
      apiParameters: [
        { name: 'id', dataType: 'string', parameterType: 'unbounded' },
        { name: 'region', dataType: 'string', parameterType: 'enum', values: ['east', 'north', 'west'] },
      ],
      solaceMessagingServices: [service],
      vendorMessagingServices: [service],
      customAttributes: [{ name: 'team', value: 'sales' }],
      attributes: [{ name: 'color', value: 'Blue' }],
    })
    for (const time of [createdTime, updatedTime]) expect(Math.abs(Number(time) - Date.now())).toBeLessThan(600_000)
    const list = await call<ListBody>('GET', PRODUCTS)
    expect(list.body.data).toEqual([body.data])
  })

  it('has plans, Event APIs and a history', async () => {
    const plans = await call<ListBody>('GET', `${PRODUCTS}/orders/plans?sortFieldName=name&sortDirection=desc`)
    expect(plans.body.data.map(({ id }) => id)).toEqual(['gold', 'silver'])
    const one = await call<{ data: { id: string } }>('GET', `${PRODUCTS}/orders/plans/silver`)
    expect(one.body.data).toEqual(plans.body.data[1])
    const eventApis = await call<ListBody>('GET', `${PRODUCTS}/orders/plans/gold/eventApis`)
    expect(eventApis.body.data.map(({ id }) => id)).toEqual(['ordersApi'])
    expect(eventApis.body.meta.pagination).toEqual({
      pageNumber: 1,
      count: 1,
      pageSize: 1,
      nextPage: null,
      totalPages: 1,
    })
    const history = await call<ListBody>('GET', `${PRODUCTS}/orders/history`)
    expect(history.body.data).toEqual([{ version: '1.0.0', displayName: 'Orders', state: 'RELEASED' }])
  })

  it.each([
    'orders/plans/bronze',
    'orders/plans/bronze/eventApis',
    'orders/plans/gold/eventApis/nothing',
    'orders/plans/bronze/eventApis/ordersApi',
    'orders/history/2.0.0',
    'orders/attributes/nothing',
    'nothing',
    'nothing/plans',
    'nothing/plans/gold/eventApis',
    'nothing/plans/gold/eventApis/ordersApi',
    'nothing/attributes',
    'nothing/attributes/color',
    'nothing/history',
  ])('answers 404 for %s', async (path) => {
    expect((await call('GET', `${PRODUCTS}/${path}`)).status).toBe(404)
  })
})

const unfit = (overrides: Parameters<typeof version>[0]): Partial<PortalFile> => ({
  products: [visible('orders', { versions: [version(overrides)] })],
})

/** One rule broken in each. */
const HIDDEN: Readonly<Record<string, Partial<PortalFile>>> = {
  'it is not shared': { products: [visible('orders', { shared: false })] },
  'its version is a draft': unfit({ state: 'DRAFT' }),
  'its version is deprecated': unfit({ state: 'DEPRECATED' }),
  'its version is retired': unfit({ state: 'RETIRED' }),
  'its version has no broker': unfit({ brokers: [] }),
  'its version has no plan': unfit({ plans: [] }),
  'its version is not public': unfit({ public: false }),
  'its broker is in no event mesh': { brokers: [{ ...broker1(), eventMeshId: null }] },
  'its broker has no management settings': { brokers: [{ ...broker1(), management: null, managementPassword: null }] },
  'its broker has no messaging settings': { brokers: [{ ...broker1(), messaging: null }] },
  'its broker has no protocol': { brokers: [{ ...broker1(), messaging: { host: 'broker1.example', protocols: [] } }] },
}

describe('a product is hidden when', () => {
  it.each(Object.entries(HIDDEN))('%s', async (_sentence, overrides) => {
    await importCatalogue(api.db, catalogue(overrides))
    expect(await idsOf('')).toEqual([])
    const paths = [
      '',
      '/plans',
      '/attributes',
      '/plans/gold',
      '/plans/gold/eventApis',
      '/plans/gold/eventApis/ordersApi',
    ]
    for (const path of paths)
      expect([path, (await call('GET', `${PRODUCTS}/orders${path}`)).status]).toEqual([path, 404])
    expect((await call('POST', `${PRODUCTS}/orders/attributes`, { body: { name: 'color', value: 'x' } })).status).toBe(
      404,
    )
    const explained = await explainProduct(api.db, api.accountId, 'orders')
    expect(explained?.versions.some(({ visible }) => visible)).toBe(false)
    await importCatalogue(api.db, catalogue())
    expect(await idsOf('')).toEqual(['orders'])
  })
})

describe('versions', () => {
  const versions = (...each: readonly (readonly [string, PortalProduct['versions'][number]['state']])[]) =>
    catalogue({
      products: [visible('orders', { versions: each.map(([name, state]) => version({ version: name, state })) })],
    })
  const shown = async () => {
    const { status, body } = await call<{ data?: { version: string } }>('GET', `${PRODUCTS}/orders`)
    return status === 200 ? body.data?.version : status
  }
  const history = async (query = '') => {
    const { status, body } = await call<ListBody<{ version: string }>>('GET', `${PRODUCTS}/orders/history${query}`)
    return status === 200 ? body.data.map((each) => each.version) : status
  }

  it('show the newest released one, and all that were published', async () => {
    await importCatalogue(
      api.db,
      versions(
        ['1.9.0', 'DEPRECATED'],
        ['1.10.0', 'RELEASED'],
        ['1.2.0', 'RETIRED'],
        ['2.0.0-rc.1', 'DRAFT'],
        ['1.10.0-rc.2', 'RELEASED'],
        ['2.0.0', 'DEPRECATED'],
      ),
    )
    expect([await shown(), await idsOf('')]).toEqual(['1.10.0', ['orders']])
    expect(await history()).toEqual(['2.0.0', '1.10.0', '1.10.0-rc.2', '1.9.0', '1.2.0'])
    expect(await history('?sortFieldName=version')).toEqual(['1.2.0', '1.9.0', '1.10.0-rc.2', '1.10.0', '2.0.0'])
    expect(await history('?sortFieldName=state&sortDirection=desc')).toEqual([
      '1.2.0',
      '1.10.0',
      '1.10.0-rc.2',
      '2.0.0',
      '1.9.0',
    ])
    expect(await history('?pageSize=2&pageNumber=3')).toEqual(['1.2.0'])
    const old = await call<{ data: { version: string; state: string } }>('GET', `${PRODUCTS}/orders/history/1.9.0`)
    expect(old.body.data).toMatchObject({ version: '1.9.0', state: 'DEPRECATED' })
    expect((await call('GET', `${PRODUCTS}/orders/history/2.0.0-rc.1`)).status).toBe(404)
  })

  it('keep a history when none is released any more', async () => {
    await importCatalogue(api.db, versions(['1.0.0', 'DEPRECATED']))
    expect([await shown(), await history()]).toEqual([404, ['1.0.0']])
    await importCatalogue(api.db, versions(['1.0.0', 'DRAFT']))
    expect([await shown(), await history()]).toEqual([404, 404])
  })
})

describe('documents', () => {
  const changes: Readonly<Record<string, ReturnType<typeof sql>>> = {
    'the environment': sql`update environments set name = 'Changed'`,
    'the event mesh': sql`update event_meshes set name = 'Changed'`,
    'the broker': sql`update brokers set name = 'Changed'`,
    'the application domain': sql`update application_domains set name = 'Changed'`,
    'the Event API': sql`update event_apis set display_name = 'Changed'`,
    'the plan': sql`update plans set name = 'Changed' where id = 'gold'`,
    'the product': sql`update products set name = 'Changed'`,
    'the version': sql`update product_versions set display_name = 'Changed'`,
  }

  beforeEach(() => importCatalogue(api.db, catalogue()))

  it.each(Object.entries(changes))('follow a change of %s', async (_what, change) => {
    await change.execute(api.db)
    expect(JSON.stringify((await call('GET', `${PRODUCTS}/orders`)).body)).toContain('"Changed"')
  })

  it('change with the transaction, not before', async () => {
    await api.db
      .transaction()
      .execute(async (trx) => {
        await sql`update products set name = 'Changed'`.execute(trx)
        throw new Error('rolled back')
      })
      .catch(() => undefined)
    expect(JSON.stringify((await call('GET', `${PRODUCTS}/orders`)).body)).not.toContain('"Changed"')
    expect((await sql`select from product_documents_due`.execute(api.db)).rows).toEqual([])
  })

  it('lose nothing when parts of one product change at the same time', async () => {
    const other = api.db.transaction().execute(async (trx) => {
      await sql`update brokers set name = 'First'`.execute(trx)
      await api.db
        .transaction()
        .execute((second) => sql`update plans set name = 'Second' where id = 'gold'`.execute(second))
    })
    await other
    const text = JSON.stringify((await call('GET', `${PRODUCTS}/orders`)).body)
    expect([text.includes('"First"'), text.includes('"Second"')]).toEqual([true, true])
  })

  it('equal what they are made of after many concurrent changes', async () => {
    await importCatalogue(api.db, catalogue({ products: ['p1', 'p2', 'p3'].map((id) => visible(id)) }))
    const writes = Array.from({ length: 30 }, (_, index) => [
      sql`update brokers set name = ${`Broker ${index}`}`,
      sql`update plans set name = ${`Gold ${index}`} where id = 'gold' and product_id = ${`p${(index % 3) + 1}`}`,
      sql`update products set name = ${`Product ${index}`} where id = ${`p${(index % 3) + 1}`}`,
    ]).flat()
    await Promise.all(writes.map((write) => write.execute(api.db)))
    const { rows } = await sql`
      select from product_version_documents v
      left join product_documents d using (account_id, product_id, version)
      where v.presentable and v.document is distinct from d.document`.execute(api.db)
    expect(rows).toEqual([])
  })
})

describe('a list', () => {
  const count = 45
  const name = (index: number) => `p${String(index).padStart(2, '0')}`

  beforeAll(() =>
    importCatalogue(
      api.db,
      catalogue({
        applicationDomains: [
          { id: 'sales', name: 'Sales', description: '' },
          { id: 'parts', name: 'Parts', description: '' },
        ],
        products: Array.from({ length: count }, (_, index) =>
          visible(name(index), {
            name: `Name ${(index * 7) % count}`,
            applicationDomainId: index % 2 === 0 ? 'sales' : index % 3 === 0 ? null : 'parts',
            attributes: [
              { name: 'color', value: ['Blue', 'Black', 'Red'][index % 3] ?? '' },
              { name: 'taste', value: ['Blueberry', 'Cherry'][index % 2] ?? '' },
            ],
            versions: [
              version({
                version: `1.${index}.0`,
                approvalType: index < 3 ? 'manual' : 'automatic',
                plans: [{ ...plan('gold'), name: index === 4 ? 'Gold 50%' : 'Golden' }],
                customAttributes: [{ name: 'team', value: `team_${index}` }],
              }),
            ],
          }),
        ),
      }),
    ),
  )

  it('is read page by page to its end', async () => {
    const found: string[] = []
    let page: number | null = 1
    while (page !== null) {
      const { body }: { body: ListBody } = await call<ListBody>('GET', `${PRODUCTS}?pageNumber=${page}`)
      expect(body.meta.pagination).toMatchObject({ pageNumber: page, count, pageSize: 20, totalPages: 3 })
      found.push(...body.data.map(({ id }) => id))
      page = body.meta.pagination.nextPage ?? null
    }
    expect(found).toEqual(Array.from({ length: count }, (_, index) => name(index)))
    const beyond = await call<ListBody>('GET', `${PRODUCTS}?pageNumber=16384&pageSize=100`)
    expect(beyond.body).toMatchObject({ data: [], meta: { pagination: { count, nextPage: null, totalPages: 1 } } })
  })

  it.each([
    ['?pageSize=2&sortDirection=desc', ['p44', 'p43']],
    ['?pageSize=3&sortFieldName=version', ['p00', 'p01', 'p02']],
    ['?pageSize=3&sortFieldName=version&sortDirection=desc', ['p44', 'p43', 'p42']],
    ['?pageSize=2&sortFieldName=name&sortDirection=desc', ['p27', 'p14']],
    ['?pageSize=2&sortFieldName=applicationDomainName', ['p03', 'p09']],
    ['?pageSize=2&sortFieldName=approvalType&sortDirection=desc', ['p00', 'p01']],
    ['?pageSize=2&sortFieldName=createdTime&pageNumber=2', ['p02', 'p03']],
  ])('is sorted: %s', async (query, ids) => {
    expect(await idsOf(query)).toEqual(ids)
  })

  it.each([
    'id',
    'displayName',
    'description',
    'state',
    'applicationDomainId',
    'brokerType',
    'updatedTime',
    'createdBy',
    'changedBy',
  ])('can be sorted by %s', async (field) =>
    expect(await idsOf(`?sortFieldName=${field}&pageSize=100`)).toHaveLength(count),
  )

  it.each([
    ['id==p07', ['p07']],
    ['version==1.4.0,name=="Name 7"', ['p01', 'p04']],
    ['id=in=(p01,p02,nothing)', ['p01', 'p02']],
    ['version=gt=1.42.0', ['p43', 'p44']],
    ['createdTime=lt=1000', []],
    ['approvalType!=automatic', ['p00', 'p01', 'p02']],
    ['plans.name=="Gold 50%"', ['p04']],
    ['plan.name==Gold?50*', []],
    [
      'solaceMessagingServices.supportedProtocols==secure-mqtt;id==p4*;approvalType==auto*',
      ['p40', 'p41', 'p42', 'p43', 'p44'],
    ],
    ['vendorMessagingServices.vendorCloudMessagingServiceId==broker1;id==p00', ['p00']],
    ['(customAttributes.name==team;customAttributes.value==team_3*);id=le=p31', ['p03', 'p30', 'p31']],
    ['(attributes.name==color;attributes.value==Blue*);id=lt=p07', ['p00', 'p03', 'p06']],
    [
      '(attributes.name==color;attributes.value==Bl*);(attributes.name==taste;attributes.value==*berry);id=lt=p07',
      ['p00', 'p04', 'p06'],
    ],
    ['apis.customAttributes.value==sales;apiParameters.values==east;id==p00', ['p00']],
    ['plans.solaceClassOfServicePolicy.maxMsgSpoolUsage=ge=500;id==p00', ['p00']],
    ['applicationDomainId==none;id=lt=p10', ['p03', 'p09']],
    ['id=in=(p10,p9,p09)&sortFieldName=version&sortDirection=desc', ['p10', 'p09']],
  ])('is filtered: %s', async (where, ids) => {
    const [filter = '', ...others] = where.split('&')
    expect(await idsOf(`?${[`where=${encodeURIComponent(filter)}`, ...others].join('&')}`)).toEqual(ids)
  })

  it('is not filtered for ever', async () => {
    const slow = withinPatience(api.db, (db) => sql`select pg_sleep(20)`.execute(db), 50)
    await expect(slow).rejects.toMatchObject({ code: 'INVALID_INPUT', problems: [{ path: 'where' }] })
  })

  it('counts what the filter lets pass', async () => {
    const { body } = await call<ListBody>('GET', `${PRODUCTS}?where=state==RELEASED;id=ge=p40&pageSize=2&pageNumber=2`)
    expect(body.data.map(({ id }) => id)).toEqual(['p42', 'p43'])
    expect(body.meta.pagination).toEqual({ pageNumber: 2, count: 5, pageSize: 2, nextPage: 3, totalPages: 3 })
  })

  it.each([
    ['?pageSize=0', 'pageSize'],
    ['?pageSize=101', 'pageSize'],
    ['?pageSize=ten', 'pageSize'],
    ['?pageNumber=0', 'pageNumber'],
    ['?pageNumber=16385', 'pageNumber'],
    ['?sortFieldName=plans', 'sortFieldName'],
    ['?sortDirection=up', 'sortDirection'],
    ['?where=a', 'where'],
    ['?where=price==1', 'where'],
    ['?where=(name==a', 'where'],
    ['?where=name==a&where=name==b', 'where'],
    ['?filter=name', 'filter'],
    ['?where=name==%00', 'where'],
  ])('refuses %s', async (query, field) => {
    for (const path of [PRODUCTS, GATEWAYS]) {
      const { status, body } = await call<{ validationDetails: Record<string, string[]> }>('GET', `${path}${query}`)
      expect([status, Object.keys(body.validationDetails)]).toEqual([400, [field]])
    }
  })

  it.each([
    '',
    '/history',
    '/history/1.0.0',
    '/plans',
    '/plans/gold',
    '/plans/gold/eventApis',
    '/plans/gold/eventApis/x1',
    '/attributes',
    '/attributes/color',
  ])('and all below a product refuse unknown parameters: %s', async (path) => {
    const { status, body } = await call<{ validationDetails: object }>('GET', `${PRODUCTS}/p00${path}?unknown=1`)
    expect([status, Object.keys(body.validationDetails)]).toEqual([400, ['unknown']])
  })

  it.each(['or%20ders', '%3Cb%3E', '..%2F..'])('refuses the id %s', async (id) => {
    expect((await call('GET', `${PRODUCTS}/${id}`)).status).toBe(400)
  })
})

describe('gateways', () => {
  const unusable = {
    ...broker1(),
    id: brokerId('broker2'),
    messaging: null,
    management: null,
    managementPassword: null,
  }

  it('are the usable brokers, with the addresses of their protocols', async () => {
    const messaging = {
      host: 'fd00::1',
      protocols: (
        [
          'smf',
          'smfc',
          'smfs',
          'amqp',
          'amqps',
          'mqtt',
          'secure-mqtt',
          'mqttws',
          'secure-mqttws',
          'http',
          'https',
        ] as const
      ).map((protocol, index) => ({ protocol, port: 1000 + index })),
    }
    await importCatalogue(api.db, catalogue({ brokers: [{ ...broker1(), messaging }, unusable] }))
    const { body } = await call<ListBody<Record<string, unknown>>>(
      'GET',
      `${GATEWAYS}?where=messagingServiceConnections.protocol==amqps`,
    )
    expect(body.data).toHaveLength(1)
    const [gateway] = body.data
    const { messagingServiceConnections: connections, ...rest } = gateway ?? {}
    expect(rest).toEqual({
      id: 'broker1',
      name: 'Broker One',
      brokerType: 'solace',
      solaceCloudMessagingServiceId: 'broker1',
      vendorCloudMessagingServiceId: 'broker1',
      environmentName: 'Production',
      eventMeshName: 'Mesh',
    })
    expect((connections as { url: string }[]).map(({ url }) => url)).toEqual([
      'tcp://[fd00::1]:1000',
      'tcp://[fd00::1]:1001',
      'tcps://[fd00::1]:1002',
      'amqp://[fd00::1]:1003',
      'amqps://[fd00::1]:1004',
      'tcp://[fd00::1]:1005',
      'ssl://[fd00::1]:1006',
      'ws://[fd00::1]:1007',
      'wss://[fd00::1]:1008',
      'http://[fd00::1]:1009',
      'https://[fd00::1]:1010',
    ])
    expect((connections as object[])[2]).toEqual({
      name: 'smfs',
      url: 'tcps://[fd00::1]:1002',
      protocol: 'smfs',
      protocolVersion: '3.0',
      bindings: { msgVpn: 'orders' },
      messagingServiceAuthentications: [],
    })
    expect((await call<{ data: unknown }>('GET', `${GATEWAYS}/broker1`)).body.data).toEqual(gateway)
    expect((await call('GET', `${GATEWAYS}/broker2`)).status).toBe(404)
    expect((await call<ListBody>('GET', `${GATEWAYS}?where=name==Other*`)).body.data).toEqual([])
  })
})

describe('accounts', () => {
  it('do not see each other’s products, plans, gateways or attributes', async () => {
    await importCatalogue(api.db, catalogue({ products: [visible('orders'), visible('mine')] }))
    const theirs = [visible('orders', { name: 'Theirs' }), visible('theirs')]
    await importCatalogue(api.db, catalogue({ products: theirs, eventApis: [ordersApi()] }, 'other'), 'other')
    const other = await api.addUser({ name: 'other-admin', account: 'other' })
    const asOther = { token: other.apiToken }
    const list = await call<ListBody>('GET', PRODUCTS, asOther)
    expect([await idsOf(''), list.body.data.map(({ id }) => id)]).toEqual([
      ['mine', 'orders'],
      ['orders', 'theirs'],
    ])
    for (const path of [
      'theirs',
      'theirs/plans',
      'theirs/history',
      'theirs/plans/gold/eventApis/ordersApi',
      'theirs/attributes',
    ]) {
      expect([path, (await call('GET', `${PRODUCTS}/${path}`)).status]).toEqual([path, 404])
    }
    const body = { name: 'color', value: 'Blue' }
    expect((await call('POST', `${PRODUCTS}/orders/attributes`, { body })).status).toBe(200)
    expect((await call('GET', `${PRODUCTS}/orders/attributes/color`, asOther)).status).toBe(404)
    expect((await call('POST', `${PRODUCTS}/theirs/attributes`, { body })).status).toBe(404)
    await sql`update brokers set name = 'Renamed' where account_id = ${api.accountId}`.execute(api.db)
    const gateway = await call<{ data: { name: string } }>('GET', `${GATEWAYS}/broker1`, asOther)
    expect(gateway.body.data.name).toBe('Broker One')
  })
})

// The description is in ../shared/spec, which not every checkout has.
describe.skipIf(!isDescribed)('all answers above', () => {
  it('are as the description of the API says', () => {
    expect([...new Set(problems)]).toEqual([])
  })
})
