import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { parsePortalFile } from '../../src/portal-file/parse-portal-file.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'

const documents = fileURLToPath(new URL('../../../shared/spec/asyncapi/', import.meta.url))
const isThere = existsSync(documents)
if (!isThere)
  process.stderr.write('skipped: products of real AsyncAPI documents, ../shared/spec/asyncapi is not there\n')

const EVENT_APIS = {
  eventPortalExport: 'solace-tools-ep-download-EventApi-Name.json',
  driverManagement: 'solace-tools-acme-rideshare-Driver-Management-System.yml',
  customAttributes: 'solace-tools-ext-customattributes.yml',
  elevatorMaintenance: 'platform-api-ApiMaintenance.yml',
  elevatorMaintenance2: 'refdesigns-elevator-co-ApiMaintenance.yml',
  billing: 'platform-api-Billing-API.yml',
  webhookBilling: 'platform-api-Webhook-Billing-API.yml',
  accountService: 'platform-api-account-service.yml',
  carConsumption: 'refdesigns-car-co-ApiConsumption.yml',
  carFailure: 'refdesigns-car-co-ApiFailure.yml',
  carSafety: 'refdesigns-car-co-ApiSafety.yml',
} as const

const DIRECT = { id: 'direct', name: 'Direct', messageDeliveryMode: 'direct' }
const COMBINED = {
  id: 'combined',
  name: 'One queue',
  messageDeliveryMode: 'guaranteed',
  queueType: 'combined',
  accessType: 'exclusive',
  maximumTimeToLive: 60,
  maxMsgSpoolUsage: 10,
}
const SINGLE = {
  ...COMBINED,
  id: 'single',
  name: 'A queue for each API',
  queueType: 'single',
  accessType: 'non-exclusive',
}

const product = (id: string, eventApis: readonly (keyof typeof EVENT_APIS)[]) => ({
  id,
  name: id,
  shared: true,
  versions: [
    {
      version: '1.0.0',
      state: 'RELEASED',
      public: true,
      eventApis,
      plans: [DIRECT, COMBINED, SINGLE],
      brokers: ['acme'],
    },
  ],
})

const registration = (id: string, productId: string, plan: string, filters: Readonly<Record<string, unknown>>) => ({
  id,
  name: id,
  source: 'test',
  filters,
  accessRequests: [{ id: `${id}-request`, product: productId, plan }],
  credentials: [{ name: 'main', consumerKey: `key-of-${id}` }],
})

interface Expected {
  readonly registration: ReturnType<typeof registration>
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  /** Subscriptions of each queue; the queues in the order of their first one. */
  readonly queues: readonly (readonly string[])[]
}

/** Written by reading the documents, not from what the code gives. */
const EXPECTED: Readonly<Record<string, Expected>> = {
  'the Event Portal export, direct: what it calls `subscribe` is what the client may subscribe to': {
    registration: registration('portal-direct', 'exported', 'direct', {}),
    publish: ['topic/value1/_2_', 'topic/value2/_2_'],
    subscribe: ['topic/value1/_1_', 'topic/value2/_1_'],
    queues: [],
  },
  // Each of the two parameters stands in one channel only.
  'the Event Portal export, one parameter narrowed': {
    registration: registration('portal-narrow', 'exported', 'combined', { Enum_1_Name: ['value2'] }),
    publish: ['topic/value1/_2_', 'topic/value2/_2_'],
    subscribe: ['topic/value2/_1_'],
    queues: [['topic/value2/_1_']],
  },
  // `C*` is the one region of the enum that begins so; the ride of the filter is a parameter of all but one channel;
  // the second document has none of these parameters.
  'ride sharing with custom attributes, one queue for both documents': {
    registration: registration('rides', 'rideSharing', 'combined', { region: ['US', 'C*'], ride_id: 'ride-7' }),
    publish: [
      'acme/rideshare/driver/accepted/0.0.1/CA/*/ride-7',
      'acme/rideshare/driver/accepted/0.0.1/US/*/ride-7',
      'acme/rideshare/driver/status/updated/0.0.1/CA/*/*',
      'acme/rideshare/driver/status/updated/0.0.1/US/*/*',
      'acme/rideshare/ride/requested/0.0.1/CA/*/ride-7',
      'acme/rideshare/ride/requested/0.0.1/US/*/ride-7',
      'acme/rideshare/test',
      'acme/rideshare/trip/updated/0.0.1/CA/*/ride-7',
      'acme/rideshare/trip/updated/0.0.1/US/*/ride-7',
    ],
    subscribe: [
      'acme/rideshare/driver/requested/0.0.1/CA/DriverMgmt/ride-7',
      'acme/rideshare/driver/requested/0.0.1/US/DriverMgmt/ride-7',
      'acme/rideshare/ride/accepted/0.0.1/CA/*/ride-7',
      'acme/rideshare/ride/accepted/0.0.1/US/*/ride-7',
      'one/name_1/*',
      'one/name_2/*',
    ],
    queues: [
      [
        'acme/rideshare/driver/requested/0.0.1/CA/DriverMgmt/ride-7',
        'acme/rideshare/driver/requested/0.0.1/US/DriverMgmt/ride-7',
        'acme/rideshare/ride/accepted/0.0.1/CA/*/ride-7',
        'acme/rideshare/ride/accepted/0.0.1/US/*/ride-7',
        'one/name_1/*',
        'one/name_2/*',
      ],
    ],
  },
  // All four documents are in the provider's view, so directions are turned round. The makes are numbers in the
  // document. The account service only takes from its clients, so it has no queue.
  'elevators, cars, billing and accounts, a queue for each document that a client receives from': {
    registration: registration('workshop', 'maintenance', 'single', {
      resource_region_id: 'fr',
      region_id: ['it', 'de'],
      make: ['2008'],
      trip_id: ['trip-*'],
    }),
    publish: [
      'acme/rideshare/trip/updated/7.0.2/json/*/trip-*/*',
      'apim/elevator-co/api/V1/json/status/*',
      'user/signedup',
    ],
    subscribe: [
      'acme/rideshare/billing/receipt/created/1.0.1/json/*',
      'acme/rideshare/driver/funds/deposited/1.0.1/*/trip-*/*',
      'apim/car-co/api/V1/json/de/2008/M2018/*/safety',
      'apim/car-co/api/V1/json/de/2008/MTPA/*/safety',
      'apim/car-co/api/V1/json/it/2008/M2018/*/safety',
      'apim/car-co/api/V1/json/it/2008/MTPA/*/safety',
      'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-1/*',
      'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-2/*',
    ],
    queues: [
      ['acme/rideshare/billing/receipt/created/1.0.1/json/*', 'acme/rideshare/driver/funds/deposited/1.0.1/*/trip-*/*'],
      [
        'apim/car-co/api/V1/json/de/2008/M2018/*/safety',
        'apim/car-co/api/V1/json/de/2008/MTPA/*/safety',
        'apim/car-co/api/V1/json/it/2008/M2018/*/safety',
        'apim/car-co/api/V1/json/it/2008/MTPA/*/safety',
      ],
      [
        'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-1/*',
        'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-2/*',
      ],
    ],
  },
  // Three documents, one channel each; a filter value outside of the enum grants nothing there.
  'everything of the cars for one vehicle': {
    registration: registration('one-car', 'cars', 'combined', {
      region_id: ['fr', 'uk'],
      make: ['108'],
      model: ['M2018'],
      vin: ['VF3-0042'],
    }),
    publish: [],
    subscribe: [
      'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/consumption',
      'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/failure',
      'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/safety',
    ],
    queues: [
      [
        'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/consumption',
        'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/failure',
        'apim/car-co/api/V1/json/fr/108/M2018/VF3-0042/safety',
      ],
    ],
  },
}

function portalYaml(url: string, eventApis: Readonly<Record<string, string>>): string {
  return stringify({
    environments: [{ id: 'test', name: 'Test' }],
    eventMeshes: [{ id: 'mesh', name: 'Mesh', environment: 'test' }],
    brokers: [
      {
        id: 'acme',
        name: 'Acme',
        eventMesh: 'mesh',
        management: { url, msgVpn: 'sandbox', username: 'admin', passwordEnv: 'ACME_PASSWORD' },
        messaging: { host: 'acme.example', protocols: { smfs: 55443 } },
      },
    ],
    applicationDomains: [{ id: 'acme', name: 'Acme' }],
    eventApis: Object.entries(eventApis).map(([id, document]) => ({
      id,
      version: '1.0.0',
      applicationDomain: 'acme',
      document: join(documents, document),
    })),
    products: [
      product('exported', ['eventPortalExport']),
      product('rideSharing', ['driverManagement', 'customAttributes']),
      product('maintenance', ['elevatorMaintenance', 'carSafety', 'billing', 'accountService']),
      product('cars', ['carConsumption', 'carFailure', 'carSafety']),
    ],
    registrations: Object.values(EXPECTED).map((expected) => expected.registration),
  })
}

describe.skipIf(!isThere)('products of real AsyncAPI documents', () => {
  let mesh: TestMesh
  let directory: string
  const write = async (name: string, eventApis: Readonly<Record<string, string>>) => {
    const path = join(directory, name)
    await writeFile(path, portalYaml(mesh.broker().url, eventApis))
    return path
  }
  const parse = (path: string) => parsePortalFile(path, { env: () => mesh.broker().password })

  beforeAll(async () => {
    mesh = await withMesh()
    directory = await mkdtemp(join(tmpdir(), 'keymesh-documents-'))
    const file = await parse(await write('portal.yaml', EVENT_APIS))
    await mesh.import(file)
    expect(await mesh.sweep()).toMatchObject({ changed: 5, failed: 0, waiting: 0 })
  })
  afterAll(async () => {
    await rm(directory, { recursive: true, force: true })
    await mesh[Symbol.asyncDispose]()
  })

  it.each(Object.entries(EXPECTED))('%s', (_title, expected) => {
    const { id } = expected.registration
    const { state } = mesh.broker()
    const smf = (topics: readonly string[]) => topics.map((topic) => `smf,${topic}`)
    const owned = state.queues.names().filter((name) => state.queues.get(name)?.owner === `key-of-${id}`)
    const queues = owned.map((name) => state.queues.members(name, 'subscriptions'))
    expect({
      publish: state.aclProfiles.members(id, 'publishTopicExceptions'),
      subscribe: state.aclProfiles.members(id, 'subscribeTopicExceptions'),
      queues: queues.toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
    }).toEqual({ publish: smf(expected.publish), subscribe: smf(expected.subscribe), queues: expected.queues })
    expect(state.clientUsernames.get(`key-of-${id}`)).toMatchObject({ enabled: true, aclProfileName: id })
  })

  it('are in step: a second plan is empty, a second sweep writes nothing', async () => {
    mesh.broker().requests.reset()
    expect(await mesh.plans()).toEqual([])
    await mesh.sweep()
    expect(mesh.writes()).toBe(0)
  })

  it('are refused with documents among them that refer to the network, each named', async () => {
    const tills = {
      till: 'refdesigns-acme-retail-till-system-v1.yml',
      tillConsumer: 'refdesigns-acme-retail-consumer-till-system-v1.yml',
    }
    const path = await write('refused.yaml', { ...EVENT_APIS, ...tills })
    const error = await parse(path).catch((caught: unknown) => caught)
    if (!(error instanceof InvalidInputError)) throw new Error(`expected a refusal, not ${String(error)}`)
    for (const { message } of error.problems) expect(message).toContain('is an address; only files of the document')
    const refused = new Set(error.problems.map(({ file = '' }) => basename(file)))
    expect([...refused].toSorted()).toEqual(Object.values(tills).toSorted())
  })
})
