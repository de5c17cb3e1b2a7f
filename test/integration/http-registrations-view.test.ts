import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEFAULT_BROKER_POLICY } from '../../src/domain/catalogue.ts'
import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import { queueName } from '../../src/domain/names.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, catalogue, clientOf, Described, importFile } from './http-registrations-fixture.ts'
import { broker, eventApi, product, productVersion } from './import-fixtures.ts'

let api: TestApi
let call: Client
beforeAll(async () => {
  api = await withApi()
  const file = catalogue()
  await importFile(api, api.accountId, {
    ...file,
    brokers: [
      ...file.brokers,
      broker('open', { policy: { ...DEFAULT_BROKER_POLICY, queuePermission: 'consume' } }),
      broker('away', { messaging: null }),
    ],
    eventApis: [
      ...file.eventApis,
      eventApi('ordersapi', { version: '2.0.0', channels: [] }),
      eventApi('odd', {
        channels: [{ name: 'a', clientMayPublish: true, clientMaySubscribe: false, parameterEnums: {} }],
      }),
    ],
    products: [
      ...file.products,
      product('openorders', {
        versions: [
          productVersion({
            eventApis: [{ id: eventApiId('ordersapi'), version: '1.0.0' }],
            brokers: [brokerId('open')],
          }),
        ],
      }),
      product('odd', {
        versions: [
          productVersion({
            eventApis: [{ id: eventApiId('odd'), version: '1.0.0' }],
            brokers: [brokerId('away'), brokerId('broker1')],
          }),
        ],
      }),
    ],
  })
  call = clientOf(api, new Described())
})
afterAll(() => api[Symbol.asyncDispose]())

const create = (registrationId: string) => call('POST', '', { registrationId, source: 'devportal', name: 'App' })
const ask = (id: string, eventApiProductId: string, accessRequestId = eventApiProductId) =>
  call('POST', `/${id}/accessRequests`, { accessRequestId, eventApiProductId, planId: 'gold' })

describe('the view of a registration', () => {
  it('shows what its clients may do on each gateway, as brokers get it', async () => {
    await create('gateways')
    await ask('gateways', 'orders')
    await ask('gateways', 'odd')
    await ask('gateways', 'secret')
    await call('POST', '/gateways/filters', { name: 'orderId', values: ['A', 'B*'] })
    await call('POST', '/gateways/accessRequests/orders/filters', { name: 'region', values: ['EU'] })
    const { data } = (await call('GET', '/gateways')).body
    expect(data.apis).toMatchObject([{ id: 'odd' }, { id: 'ordersapi', version: '1.0.0' }])
    // `away` is not usable, and nobody approved what `broker2` is for.
    expect(data.gatewayMessagingServices).toEqual([
      {
        name: 'broker1',
        messagingServiceConnections: [
          {
            name: 'smfs',
            url: 'tcps://broker1.example:55443',
            protocol: 'smfs',
            protocolVersion: '3.0',
            bindings: { msgVpn: 'default' },
            messagingServiceAuthentications: [],
          },
        ],
        permissions: {
          publish: [
            { a: { permissions: ['a'], channelId: 'a', isChannel: true } },
            {
              'order/create/{orderId}': {
                permissions: ['order/create/A', 'order/create/B*'],
                channelId: 'order/create/{orderId}',
                isChannel: true,
              },
            },
          ],
          subscribe: [
            {
              'order/updated/{region}/{orderId}': {
                permissions: ['order/updated/EU/A', 'order/updated/EU/B*'],
                channelId: 'order/updated/{region}/{orderId}',
                isChannel: true,
              },
            },
          ],
        },
      },
    ])
    const [listed] = (await call('GET', '?where=registrationId==gateways')).body.data as unknown as readonly object[]
    expect(listed).toEqual(data)
  })

  it('joins what two requests grant on one channel, and forgets what was revoked', async () => {
    await create('joined')
    await ask('joined', 'orders', 'eu-orders')
    await ask('joined', 'orders', 'us-orders')
    await call('POST', '/joined/accessRequests/eu-orders/filters', { name: 'region', values: ['EU'] })
    await call('POST', '/joined/accessRequests/us-orders/filters', { name: 'region', values: ['US'] })
    const topics = async () => {
      const { gatewayMessagingServices } = (await call('GET', '/joined')).body.data
      const [gateway] = gatewayMessagingServices as readonly {
        permissions: { subscribe: Record<string, { permissions: string[] }>[] }
      }[]
      return gateway?.permissions.subscribe.flatMap((each) =>
        Object.values(each).flatMap(({ permissions }) => permissions),
      )
    }
    expect(await topics()).toEqual(['order/updated/EU/*', 'order/updated/US/*'])
    await call('PATCH', '/joined/accessRequests/us-orders', { state: 'REVOKED' })
    expect(await topics()).toEqual(['order/updated/EU/*'])
  })

  it('names queues that nobody guesses where every client may consume, and none where nothing is received', async () => {
    await create('queues')
    const { data } = (await ask('queues', 'openorders')).body
    const derived = queueName({ accountId: 'default', registrationId: 'queues', accessRequestId: 'openorders' })
    const nonce =
      (
        await api.db
          .selectFrom('access_requests')
          .select('queue_nonce')
          .where('id', '=', 'openorders')
          .executeTakeFirst()
      )?.queue_nonce ?? ''
    expect(nonce).toHaveLength(26)
    const secret = queueName({ accountId: 'default', registrationId: 'queues', accessRequestId: 'openorders', nonce })
    expect(data).toMatchObject({ eventApiProductResourceInformation: { name: secret } })
    expect(secret).not.toBe(derived)
    expect((await ask('queues', 'odd')).body.data).not.toHaveProperty('eventApiProductResourceInformation')
  })
})

describe('the Event APIs', () => {
  beforeAll(async () => {
    await create('apis')
    await ask('apis', 'orders')
    await ask('apis', 'odd')
  })

  it.each([
    ['a registration', '/apis', 2],
    ['an access request', '/apis/accessRequests/orders', 1],
  ])('of %s are listed, with their documents', async (_name, path, count) => {
    const listed = await call('GET', `${path}/eventApis?sortFieldName=name&sortDirection=desc`)
    expect(listed.body.meta).toMatchObject({ pagination: { count } })
    expect((listed.body.data as unknown as readonly object[])[0]).toEqual({
      id: 'ordersapi',
      name: 'ordersapi',
      displayName: 'ordersapi',
      description: '',
      version: '1.0.0',
      customAttributes: [],
    })
    const document = await call('GET', `${path}/eventApis/ordersapi?asyncApiVersion=2.2.0`)
    expect(document).toMatchObject({
      status: 200,
      body: {
        asyncapi: '2.2.0',
        info: { 'x-ep-event-api-product-id': 'orders', 'x-ep-event-api-product-version': '1.0.0' },
        servers: { 'broker1-smfs': { url: 'tcps://broker1.example:55443' } },
      },
    })
    const yaml = await call('GET', `${path}/eventApis/ordersapi?apiFormat=application/x-yaml`)
    expect(yaml.headers['content-type']).toContain('text/plain')
    expect(String(yaml.body)).toContain('x-ep-event-api-product-id: orders')
    expect((await call('GET', `${path}/eventApis/nowhere`)).status).toBe(404)
    expect((await call('GET', `${path}/eventApis/ordersapi?apiFormat=text/html`)).status).toBe(400)
  })

  it('of what was revoked are not those of the registration any more', async () => {
    await call('PATCH', '/apis/accessRequests/odd', { state: 'REVOKED' })
    expect((await call('GET', '/apis/eventApis')).body.data).toMatchObject([{ id: 'ordersapi' }])
    expect((await call('GET', '/apis/eventApis/odd')).status).toBe(404)
    expect((await call('GET', '/apis/accessRequests/odd/eventApis')).body.data).toMatchObject([{ id: 'odd' }])
    expect((await call('GET', '/nobody/eventApis')).status).toBe(404)
    expect((await call('GET', '/apis/accessRequests/nothing/eventApis')).status).toBe(404)
  })
})
