import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { Service, until } from '../helpers/service.ts'

// The calls of a gateway that publishes the products of another system: one access request for each subscription, its id
// made of the application, the product and the plan.

const ADMINISTRATOR = { username: 'operator', password: 'a password for the first start' }
const KEY = 'gateway-key-7Qx2'
const SECRET = 'gateway-secret-Vb93'
const APPLICATION = randomUUID()

/** AsyncAPI 2.x: clients subscribe to what the document lets them subscribe to. */
const DOCUMENT = {
  asyncapi: '2.6.0',
  info: { title: 'Shipments', version: '1.0.0' },
  channels: {
    'shipments/{country}/sent': {
      parameters: { country: { schema: { type: 'string', enum: ['de', 'fr'] } } },
      subscribe: { message: { payload: { type: 'object' } } },
    },
    'shipments/{country}/cancel': {
      parameters: { country: { schema: { type: 'string' } } },
      publish: { message: { payload: { type: 'object' } } },
    },
  },
}
const NEWS = {
  asyncapi: '2.6.0',
  info: { title: 'News', version: '1.0.0' },
  channels: { 'news/all': { subscribe: { message: { payload: { type: 'object' } } } } },
}
/** Long enough that what is disabled is seen before it is gone. */
const GRACE_PERIOD = '5s'

let sandbox: Sandbox
let dataDirectory: string
let service: Service
let url: string
let token: string
/** Made by the service. */
const ids = new Map<string, string>()
const idOf = (name: string): string => ids.get(name) ?? ''

interface Reply {
  readonly status: number
  readonly body: ReplyBody
}
interface ReplyBody {
  readonly data: Record<string, unknown>
  readonly meta: { readonly pagination: { readonly nextPage: number | null } }
  readonly [key: string]: unknown
}

async function call(method: string, path: string, body?: object, bearer = token): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      accept: 'application/json',
      ...(bearer !== '' && { authorization: `Bearer ${bearer}` }),
      // Sent with requests that have no body, too.
      'content-type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as ReplyBody }
}

const apim = (method: string, path: string, body?: object): Promise<Reply> => call(method, `/api/v2/apim${path}`, body)

async function made(name: string, path: string, body: object): Promise<string> {
  const reply = await call('POST', `/api/v2/portal${path}`, body)
  expect({ path, ...reply }).toMatchObject({ status: 201 })
  ids.set(name, String(reply.body.data.id))
  return idOf(name)
}

/** As section 4.4 of the specification has it, for a user of one account. */
async function signIn(): Promise<string> {
  const user = await call('POST', '/api/v1/iam/tokens', ADMINISTRATOR, '')
  const created = await call(
    'POST',
    '/api/v0/user/apiTokens',
    { name: 'gateway', permissions: PERMISSIONS },
    String(user.body.token),
  )
  expect(created.status).toBe(201)
  return String(created.body.data.token)
}

/** Two brokers; the product `Shipments` on both, `News` on the second only. */
async function publish(): Promise<void> {
  const environmentId = await made('environment', '/environments', { name: 'Production' })
  const eventMeshId = await made('mesh', '/eventMeshes', { name: 'Mesh', environmentId })
  const applicationDomainId = await made('domain', '/applicationDomains', { name: 'Logistics' })
  for (const broker of sandbox.brokers) {
    const { url: address, msgVpnName, username, password, name } = broker
    await made(name, '/brokers', {
      name,
      eventMeshId,
      management: { url: address, msgVpnName, username, password },
      messaging: { host: 'localhost', protocols: [{ protocol: 'smfs', port: 55_443 }], logins: { off: 'all' } },
      // The only registration there is may be withdrawn.
      policy: { maxWithdrawals: 5 },
    })
  }
  const plans = [{ id: 'gold', name: 'Gold', messageDeliveryMode: 'guaranteed', maxMsgSpoolUsage: 10 }]
  const brokersOf = { Shipments: ['broker-1', 'broker-2'], News: ['broker-2'] }
  for (const [name, brokers] of Object.entries(brokersOf)) {
    const document = name === 'News' ? NEWS : DOCUMENT
    const eventApi = await made(`${name} API`, '/eventApis', { version: '1.0.0', name, applicationDomainId, document })
    const product = await made(name, '/products', { name, applicationDomainId, shared: true })
    const versions = `/api/v2/portal/products/${product}/versions`
    const eventApis = [{ id: eventApi, version: '1.0.0' }]
    const version = { version: '1.0.0', public: true, plans, eventApis, brokers: brokers.map(idOf) }
    expect(await call('POST', versions, version)).toMatchObject({ status: 201 })
    expect(await call('PATCH', `${versions}/1.0.0`, { state: 'RELEASED' })).toMatchObject({ status: 200 })
  }
}

beforeAll(async () => {
  sandbox = await startSandbox({ brokers: 2 })
  for (const { requests } of sandbox.brokers) requests.keepLog(1000)
  dataDirectory = await mkdtemp(join(tmpdir(), 'keymesh-gateway-'))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(dataDirectory, 0o711)
  service = await Service.start({
    dataDirectory,
    env: {
      KEYMESH_HOST: '127.0.0.1',
      KEYMESH_ADMIN_USERNAME: ADMINISTRATOR.username,
      KEYMESH_ADMIN_PASSWORD: ADMINISTRATOR.password,
      KEYMESH_CREDENTIAL_NAME_OPTIONAL: 'true',
      KEYMESH_POLL_CRON: '* * * * * *',
      KEYMESH_GRACE_PERIOD: GRACE_PERIOD,
    },
  })
  url = String((await service.logged('api.listening')).url)
  token = await signIn()
  await publish()
}, 120_000)
afterAll(async () => {
  await service?.stop()
  await service?.databaseGone()
  await sandbox?.close()
  await rm(dataDirectory, { recursive: true, force: true })
})

const [first, second] = [0, 1].map((index) => () => sandbox.broker(index)) as [() => SandboxBroker, () => SandboxBroker]

/** What of ours is on a broker; shared client profiles apart. */
function objectsOn({ state }: SandboxBroker) {
  const ours = (names: readonly string[]) => names.filter((name) => !/^#|^default$/.test(name))
  const aclProfiles = ours(state.aclProfiles.names())
  const [aclProfile] = aclProfiles
  return {
    clientUsernames: ours(state.clientUsernames.names()).map((name) => ({
      name,
      enabled: state.clientUsernames.get(name)?.enabled,
      aclProfile: state.clientUsernames.get(name)?.aclProfileName === aclProfile,
    })),
    publish: aclProfile === undefined ? [] : state.aclProfiles.members(aclProfile, 'publishTopicExceptions'),
    subscribe: aclProfile === undefined ? [] : state.aclProfiles.members(aclProfile, 'subscribeTopicExceptions'),
    queues: ours(state.queues.names()).map((name) => ({
      owner: state.queues.get(name)?.owner,
      subscriptions: state.queues.members(name, 'subscriptions'),
    })),
  }
}
type Objects = ReturnType<typeof objectsOn>

const USERNAME = { name: KEY, enabled: true, aclProfile: true }
const SENT = ['shipments/de/sent', 'shipments/fr/sent']
const smf = (topics: readonly string[]) => topics.map((topic) => `smf,${topic}`)
const NOTHING: Objects = { clientUsernames: [], publish: [], subscribe: [], queues: [] }
const OF_SHIPMENTS: Objects = {
  clientUsernames: [USERNAME],
  publish: smf(['shipments/*/cancel']),
  subscribe: smf(SENT),
  queues: [{ owner: KEY, subscriptions: SENT }],
}
const OF_NEWS: Objects = {
  clientUsernames: [USERNAME],
  publish: [],
  subscribe: smf(['news/all']),
  queues: [{ owner: KEY, subscriptions: ['news/all'] }],
}

/** Waits until a broker holds exactly this; says what it holds when it does not come to it. */
async function settled(broker: SandboxBroker, wanted: Objects): Promise<void> {
  const text = canonical(wanted)
  await until(`${broker.name} holds what it should`, () => (canonical(objectsOn(broker)) === text ? true : null)).catch(
    () => expect(objectsOn(broker)).toEqual(wanted),
  )
}
const canonical = (objects: Objects): string =>
  JSON.stringify({ ...objects, queues: objects.queues.map((each) => JSON.stringify(each)).sort() })

/** Disabled while the rest still stands, and gone when the grace period is over: never the other way round. */
async function withdrawn(broker: SandboxBroker): Promise<void> {
  await until(`${broker.name} disables the client username`, () =>
    objectsOn(broker).clientUsernames.some(({ enabled }) => enabled === false) ? true : null,
  )
  expect(broker.state.checkLogin(KEY, SECRET)).toBe('shutdown')
  expect(objectsOn(broker).queues).not.toEqual([])
  await settled(broker, NOTHING)
  const username = new RegExp(`/clientUsernames/${KEY}(\\?|$)`)
  const writes = broker.requests.log.filter(({ target, method }) => username.test(target) && method !== 'GET')
  expect(writes.slice(-2).map(({ method }) => method)).toEqual(['PATCH', 'DELETE'])
}

const requestIdOf = (product: string): string => `${APPLICATION}_${idOf(product)}_gold`
const requestFor = (product: string) => ({
  accessRequestId: requestIdOf(product),
  eventApiProductId: idOf(product),
  planId: 'gold',
})
const REGISTRATION = `/appRegistrations/${APPLICATION}`

async function live(product: string): Promise<void> {
  await until(`the access request for ${product} is LIVE`, async () => {
    const { body } = await apim('GET', `${REGISTRATION}/accessRequests`)
    const listed = body.data as unknown as readonly { readonly accessRequestId: string; readonly state: string }[]
    return listed.find(({ accessRequestId }) => accessRequestId === requestIdOf(product))?.state === 'LIVE'
      ? true
      : null
  })
}

describe('a gateway that speaks the APIM API to a running service', { timeout: 120_000 }, () => {
  it('finds the products, their plans and their AsyncAPI documents', async () => {
    const names: string[] = []
    for (let page: number | null = 1; page !== null; ) {
      const { status, body } = await apim('GET', `/eventApiProducts?pageSize=1&pageNumber=${page}`)
      expect(status).toBe(200)
      for (const { name } of body.data as unknown as readonly { readonly name: string }[]) names.push(name)
      page = body.meta.pagination.nextPage
    }
    expect(names.sort()).toEqual(['News', 'Shipments'])

    const product = `/eventApiProducts/${idOf('Shipments')}`
    const plans = await apim('GET', `${product}/plans`)
    expect(plans).toMatchObject({ status: 200, body: { data: [{ id: 'gold', name: 'Gold' }] } })
    const eventApis = await apim('GET', `${product}/plans/gold/eventApis`)
    expect(eventApis).toMatchObject({ status: 200, body: { data: [{ id: idOf('Shipments API') }] } })
    const document = await apim('GET', `${product}/plans/gold/eventApis/${idOf('Shipments API')}?asyncApiVersion=2.2.0`)
    expect(document).toMatchObject({
      status: 200,
      body: {
        asyncapi: '2.2.0',
        info: {
          title: 'Shipments',
          'x-ep-event-api-product-id': idOf('Shipments'),
          'x-ep-event-api-product-name': 'Shipments',
          'x-ep-event-api-product-version': '1.0.0',
          'x-ep-application-domain-id': idOf('domain'),
        },
        channels: { 'shipments/{country}/sent': { subscribe: {} }, 'shipments/{country}/cancel': { publish: {} } },
      },
    })
    expect(Object.keys(document.body.servers as object)).toHaveLength(2)
  })

  it('registers an application that is not there yet, and gives it credentials without a name', async () => {
    expect((await apim('GET', REGISTRATION)).status).toBe(404)
    const registration = { registrationId: APPLICATION, source: 'gateway', name: 'Application of the gateway' }
    expect(await apim('POST', '/appRegistrations', registration)).toMatchObject({ status: 201 })
    expect((await apim('GET', REGISTRATION)).status).toBe(200)
    const secret = { consumerKey: KEY, consumerSecret: SECRET }
    const credentials = await apim('POST', `${REGISTRATION}/credentials`, { secret })
    expect(credentials).toMatchObject({ status: 200, body: { data: { name: KEY, secret } } })
    // Nothing was asked for, so no broker has anything to do with it.
    for (const broker of sandbox.brokers) expect(objectsOn(broker)).toEqual(NOTHING)
  })

  it('asks for access by an id made of application, product and plan, and every broker of the product follows', async () => {
    expect(idOf('Shipments')).toMatch(/^[A-Za-z0-9]{11}$/)
    expect(requestIdOf('Shipments').length).toBeLessThanOrEqual(64)
    const asked = await apim('POST', `${REGISTRATION}/accessRequests`, requestFor('Shipments'))
    expect(asked).toMatchObject({ status: 200, body: { data: { state: 'APPROVED' } } })
    for (const broker of sandbox.brokers) {
      await settled(broker, OF_SHIPMENTS)
      expect(broker.state.checkLogin(KEY, SECRET)).toBe('accepted')
    }
    await live('Shipments')

    const more = await apim('POST', `${REGISTRATION}/accessRequests`, requestFor('News'))
    expect(more).toMatchObject({ status: 200, body: { data: { state: 'APPROVED' } } })
    await settled(second(), {
      clientUsernames: [USERNAME],
      publish: OF_SHIPMENTS.publish,
      subscribe: [...OF_NEWS.subscribe, ...OF_SHIPMENTS.subscribe],
      queues: [...OF_SHIPMENTS.queues, ...OF_NEWS.queues],
    })
    await live('News')
    expect(objectsOn(first())).toEqual(OF_SHIPMENTS)
  })

  it('gives one access back: its broker is left, the other keeps what the other access needs', async () => {
    const path = `${REGISTRATION}/accessRequests/${requestIdOf('Shipments')}`
    expect((await apim('DELETE', path)).status).toBe(204)
    expect((await apim('GET', path)).status).toBe(404)
    await withdrawn(first())
    await settled(second(), OF_NEWS)
    expect(second().state.checkLogin(KEY, SECRET)).toBe('accepted')
    await live('News')
  })

  it('takes the application back, and nothing of it is left', async () => {
    expect((await apim('DELETE', REGISTRATION)).status).toBe(204)
    expect((await apim('GET', REGISTRATION)).status).toBe(404)
    expect((await apim('DELETE', REGISTRATION)).status).toBe(404)
    await withdrawn(second())
    await settled(first(), NOTHING)
  })

  it('leaves no secret in what the service printed, and no error', () => {
    expect(service.printed).not.toContain(SECRET)
    expect(service.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
  })
})
