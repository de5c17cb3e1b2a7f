import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Viewpoint } from '../../src/domain/catalogue.ts'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { deriveTopics } from '../../src/domain/topics.ts'
import { readAsyncApiDocument } from '../../src/portal-file/asyncapi-document.ts'

const directory = fileURLToPath(new URL('../../../shared/spec/asyncapi', import.meta.url))
const isThere = existsSync(directory)
if (!isThere) process.stderr.write('skipped: real AsyncAPI documents, ../shared/spec/asyncapi is not there\n')

interface Expected {
  readonly version: string
  readonly viewpoint: Viewpoint
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  /** Lines that the import warns of. */
  readonly warns: readonly number[]
}

const carTopics = (event: string): readonly string[] => [
  `apim/car-co/api/V1/json/de/108/M2018/*/${event}`,
  `apim/car-co/api/V1/json/de/108/MTPA/*/${event}`,
  `apim/car-co/api/V1/json/de/2008/M2018/*/${event}`,
  `apim/car-co/api/V1/json/de/2008/MTPA/*/${event}`,
  `apim/car-co/api/V1/json/fr/108/M2018/*/${event}`,
  `apim/car-co/api/V1/json/fr/108/MTPA/*/${event}`,
  `apim/car-co/api/V1/json/fr/2008/M2018/*/${event}`,
  `apim/car-co/api/V1/json/fr/2008/MTPA/*/${event}`,
  `apim/car-co/api/V1/json/it/108/M2018/*/${event}`,
  `apim/car-co/api/V1/json/it/108/MTPA/*/${event}`,
  `apim/car-co/api/V1/json/it/2008/M2018/*/${event}`,
  `apim/car-co/api/V1/json/it/2008/MTPA/*/${event}`,
]

const elevator: Expected = {
  version: '2.0.0',
  viewpoint: 'provider',
  publish: ['apim/elevator-co/api/V1/json/status/*'],
  subscribe: [
    'apim/elevator-co/api/V1/json/de/elevator/maintenace/elev-make-1/*',
    'apim/elevator-co/api/V1/json/de/elevator/maintenace/elev-make-2/*',
    'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-1/*',
    'apim/elevator-co/api/V1/json/fr/elevator/maintenace/elev-make-2/*',
    'apim/elevator-co/api/V1/json/us-east/elevator/maintenace/elev-make-1/*',
    'apim/elevator-co/api/V1/json/us-east/elevator/maintenace/elev-make-2/*',
    'apim/elevator-co/api/V1/json/us-west/elevator/maintenace/elev-make-1/*',
    'apim/elevator-co/api/V1/json/us-west/elevator/maintenace/elev-make-2/*',
  ],
  warns: [],
}

/** Written from the documents, not from what the code gives. */
const imported: Readonly<Record<string, Expected>> = {
  'platform-api-ApiMaintenance.yml': elevator,
  'refdesigns-elevator-co-ApiMaintenance.yml': elevator,
  'platform-api-Billing-API.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: ['acme/rideshare/trip/updated/7.0.2/json/*/*/*'],
    subscribe: [
      'acme/rideshare/billing/receipt/created/1.0.1/json/*',
      'acme/rideshare/driver/funds/deposited/1.0.1/*/*/*',
    ],
    warns: [],
  },
  'platform-api-Webhook-Billing-API.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: ['acme/rideshare/driver/funds/deposited/1.0.1/*/*/*', 'acme/rideshare/trip/updated/7.0.2/json/*/*/*'],
    subscribe: ['acme/rideshare/billing/receipt/created/1.0.1/json/*'],
    warns: [],
  },
  'platform-api-account-service.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: ['user/signedup'],
    subscribe: [],
    warns: [],
  },
  // The makes are numbers in the documents: 108 and 2008.
  'refdesigns-car-co-ApiConsumption.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: [],
    subscribe: carTopics('consumption'),
    warns: [14, 15],
  },
  // Its two examples lack the `components` that its schema asks for: an error of the examples only.
  'refdesigns-car-co-ApiFailure.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: [],
    subscribe: carTopics('failure'),
    warns: [14, 15, 69, 70],
  },
  'refdesigns-car-co-ApiSafety.yml': {
    version: '2.0.0',
    viewpoint: 'provider',
    publish: [],
    subscribe: carTopics('safety'),
    warns: [14, 15],
  },
  'solace-tools-acme-rideshare-Driver-Management-System.yml': {
    version: '2.0.0',
    viewpoint: 'client',
    publish: [
      'acme/rideshare/driver/accepted/0.0.1/CA/*/*',
      'acme/rideshare/driver/accepted/0.0.1/MX/*/*',
      'acme/rideshare/driver/accepted/0.0.1/UK/*/*',
      'acme/rideshare/driver/accepted/0.0.1/US/*/*',
      'acme/rideshare/driver/status/updated/0.0.1/CA/*/*',
      'acme/rideshare/driver/status/updated/0.0.1/MX/*/*',
      'acme/rideshare/driver/status/updated/0.0.1/UK/*/*',
      'acme/rideshare/driver/status/updated/0.0.1/US/*/*',
      'acme/rideshare/ride/requested/0.0.1/CA/*/*',
      'acme/rideshare/ride/requested/0.0.1/MX/*/*',
      'acme/rideshare/ride/requested/0.0.1/UK/*/*',
      'acme/rideshare/ride/requested/0.0.1/US/*/*',
      'acme/rideshare/test',
      'acme/rideshare/trip/updated/0.0.1/CA/*/*',
      'acme/rideshare/trip/updated/0.0.1/MX/*/*',
      'acme/rideshare/trip/updated/0.0.1/UK/*/*',
      'acme/rideshare/trip/updated/0.0.1/US/*/*',
    ],
    subscribe: [
      'acme/rideshare/driver/requested/0.0.1/CA/DriverMgmt/*',
      'acme/rideshare/driver/requested/0.0.1/MX/DriverMgmt/*',
      'acme/rideshare/driver/requested/0.0.1/UK/DriverMgmt/*',
      'acme/rideshare/driver/requested/0.0.1/US/DriverMgmt/*',
      'acme/rideshare/ride/accepted/0.0.1/CA/*/*',
      'acme/rideshare/ride/accepted/0.0.1/MX/*/*',
      'acme/rideshare/ride/accepted/0.0.1/UK/*/*',
      'acme/rideshare/ride/accepted/0.0.1/US/*/*',
    ],
    warns: [],
  },
  'solace-tools-ep-download-EventApi-Name.json': {
    version: '2.5.0',
    viewpoint: 'client',
    publish: ['topic/value1/_2_', 'topic/value2/_2_'],
    subscribe: ['topic/value1/_1_', 'topic/value2/_1_'],
    warns: [],
  },
  'solace-tools-ext-customattributes.yml': {
    version: '2.5.0',
    viewpoint: 'client',
    publish: [],
    subscribe: ['one/name_1/*', 'one/name_2/*'],
    warns: [],
  },
}

/** Documents that take schemas from the network, with the lines that do. */
const refused: Readonly<Record<string, readonly number[]>> = {
  'refdesigns-acme-retail-consumer-till-system-v1.yml': [72, 81, 83, 85, 87, 98, 100],
  'refdesigns-acme-retail-till-system-v1.yml': [74, 83, 85, 87, 89, 100, 102],
}

describe.skipIf(!isThere)('real AsyncAPI documents', () => {
  it('all have an expectation here', () => {
    expect(readdirSync(directory).toSorted()).toEqual([...Object.keys(imported), ...Object.keys(refused)].toSorted())
  })

  it.each(Object.entries(imported))('%s gives the topics read from it by hand', async (name, expected) => {
    const document = await readAsyncApiDocument(`${directory}/${name}`)
    const topics = deriveTopics({ channels: document.channels, filters: [], maxTopics: 1000 })
    expect({ version: document.version, viewpoint: document.viewpoint, topics }).toEqual({
      version: expected.version,
      viewpoint: expected.viewpoint,
      topics: { ok: true, publish: expected.publish, subscribe: expected.subscribe, warnings: [] },
    })
    expect(document.warnings.map(({ line }) => line)).toEqual(expected.warns)
    // Nothing refers out of the document any more.
    expect(JSON.stringify(document.document)).not.toMatch(/"\$ref":"[^#]/)
  })

  it.each(Object.entries(refused))('%s is refused: it takes schemas from the network', async (name, lines) => {
    const error = await readAsyncApiDocument(`${directory}/${name}`).catch((caught: unknown) => caught)
    if (!(error instanceof InvalidInputError)) throw new Error('expected a refusal')
    expect(error.problems.map(({ line }) => line)).toEqual(lines)
    for (const { message } of error.problems) {
      expect(message).toMatch(
        /^The reference `https:.*` is an address; only files of the document's own directory are read\.$/,
      )
    }
  })

  it('turns a document round when the portal file says so', async () => {
    const name = 'solace-tools-ep-download-EventApi-Name.json'
    const { channels } = await readAsyncApiDocument(`${directory}/${name}`, { viewpoint: 'provider' })
    expect(deriveTopics({ channels, filters: [], maxTopics: 1000 })).toMatchObject({
      publish: ['topic/value1/_1_', 'topic/value2/_1_'],
      subscribe: ['topic/value1/_2_', 'topic/value2/_2_'],
    })
  })
})
