import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { strFromU8, unzipSync } from 'fflate'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { brokerId, eventApiId } from '../../src/domain/ids.ts'
import type { PortalEventApi } from '../../src/domain/portal-file.ts'
import { type AsyncApiDocument, readAsyncApiDocument } from '../../src/portal-file/asyncapi-document.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import {
  catalogue,
  describedCalls,
  importCatalogue,
  ordersApi,
  PRODUCTS,
  version,
  visible,
} from './http-catalogue-fixtures.ts'

let api: TestApi
const { call, problems, isDescribed } = describedCalls(() => api)
const document = (eventApi: string, query = '') => `${PRODUCTS}/orders/plans/gold/eventApis/${eventApi}${query}`

interface Rendered {
  readonly asyncapi: string
  readonly info: Readonly<Record<string, string>>
  readonly servers: Readonly<Record<string, { readonly url: string; readonly protocol: string }>>
  readonly channels: object
}

beforeAll(async () => {
  api = await withApi()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('the document of an Event API', () => {
  beforeAll(() => importCatalogue(api.db, catalogue()))

  it('is bare JSON with the servers of the product and the keys of gateways', async () => {
    const { status, headers, body } = await call<Rendered>('GET', document('ordersApi'))
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
    expect(body.asyncapi).toBe('2.6.0')
    expect(body.info).toEqual({
      title: 'Orders',
      version: '1.0.0',
      'x-ep-event-api-product-id': 'orders',
      'x-ep-event-api-product-name': 'orders',
      'x-ep-event-api-product-version': '1.0.0',
      'x-ep-application-domain-id': 'sales',
    })
    expect(Object.entries(body.servers).map(([name, { url, protocol }]) => [name, url, protocol])).toEqual([
      ['broker1-smfs', 'tcps://broker1.example:55443', 'smfs'],
      ['broker1-secure-mqtt', 'ssl://broker1.example:8883', 'secure-mqtt'],
    ])
  })

  it('is the same in every format', async () => {
    const { body } = await call<Rendered>('GET', document('ordersApi', '?asyncApiVersion=2.2.0'))
    expect(body.asyncapi).toBe('2.2.0')
    const format = async (apiFormat: string) => {
      const query = `?asyncApiVersion=2.2.0&apiFormat=${encodeURIComponent(apiFormat)}`
      const url = document('ordersApi', query)
      const answer = await api.app.inject({ url, headers: { authorization: `Bearer ${api.token}` } })
      return { type: answer.headers['content-type'], bytes: answer.rawPayload, text: answer.body }
    }
    const yaml = await format('application/x-yaml')
    expect([yaml.type, parse(yaml.text)]).toEqual(['text/plain; charset=utf-8', body])
    const zip = await format('application/zip')
    const files = unzipSync(zip.bytes)
    expect([zip.type, Object.keys(files)]).toEqual(['application/zip', ['ordersApi.json']])
    expect(JSON.parse(strFromU8(files['ordersApi.json'] ?? new Uint8Array()))).toEqual(body)
    expect((await format('application/zip')).bytes.equals(zip.bytes)).toBe(true)
    expect(JSON.parse((await format('application/json')).text)).toEqual(body)
    await call('GET', document('ordersApi', '?apiFormat=application/x-yaml'))
    await call('GET', document('ordersApi', '?apiFormat=application/zip'))
  })

  it.each([
    ['?apiFormat=application/xml', 'apiFormat'],
    ['?apiFormat=', 'apiFormat'],
    ['?asyncApiVersion=3.0.0', 'asyncApiVersion'],
    ['?asyncApiVersion=2.3.0', 'asyncApiVersion'],
    ['?pageSize=1', 'pageSize'],
  ])('is refused with %s', async (query, field) => {
    const { status, body } = await call<{ validationDetails: object }>('GET', document('ordersApi', query))
    expect([status, Object.keys(body.validationDetails)]).toEqual([400, [field]])
  })

  it('comes in the format that the client takes, or not at all', async () => {
    const answered = async (accept: string | undefined, apiFormat?: string) => {
      const url = document('ordersApi', apiFormat === undefined ? '' : `?apiFormat=${encodeURIComponent(apiFormat)}`)
      const headers = { authorization: `Bearer ${api.token}`, ...(accept === undefined ? {} : { accept }) }
      const { statusCode, headers: answer, body } = await api.app.inject({ url, headers })
      const type = String(answer['content-type']).split(';')[0]
      return statusCode === 200 ? type : { statusCode, type, message: JSON.parse(body).message as string }
    }
    for (const accept of [undefined, '*/*', 'application/*', 'application/json', 'text/html, */*;q=0.8', '']) {
      expect(await answered(accept)).toBe('application/json')
    }
    for (const accept of ['application/x-yaml', 'text/yaml', 'application/json;q=0.1, text/plain']) {
      expect(await answered(accept)).toBe('text/plain')
    }
    expect(await answered('application/zip')).toBe('application/zip')
    expect(await answered('application/yaml', 'application/x-yaml')).toBe('text/plain')
    expect(await answered('application/*', 'application/zip')).toBe('application/zip')
    const refused = { statusCode: 406, type: 'application/json', message: expect.stringContaining('application/json') }
    expect(await answered('image/png')).toEqual(refused)
    expect(await answered('application/json;q=0, image/*')).toEqual(refused)
    expect(await answered('application/zip', 'application/json')).toEqual(refused)
  })

  it('is that of the version that is shown', async () => {
    const second = ordersApi({ version: '2.0.0', document: { ...ordersApi().document, json: { asyncapi: '2.0.0' } } })
    const versions = [
      version(),
      version({ version: '2.0.0', eventApis: [{ id: eventApiId('ordersApi'), version: '2.0.0' }] }),
    ]
    const products = [visible('orders', { versions })]
    await importCatalogue(api.db, catalogue({ eventApis: [ordersApi(), second], products }))
    const { body } = await call<Rendered>('GET', document('ordersApi'))
    expect([body.asyncapi, body.info['x-ep-event-api-product-version']]).toEqual(['2.0.0', '2.0.0'])
  })
})

const FOLDERS = ['../../examples/asyncapi', '../../../shared/spec/asyncapi'].map((folder) =>
  fileURLToPath(new URL(folder, import.meta.url)),
)

/** Real documents: those of the example, and those of ../shared/spec where it is there. */
async function readDocuments(): Promise<readonly AsyncApiDocument[]> {
  const files = FOLDERS.filter(existsSync).flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => /\.(ya?ml|json)$/.test(name))
      .map((name) => join(folder, name)),
  )
  const read = await Promise.all(files.map((file) => readAsyncApiDocument(file).catch(() => null)))
  return read.filter((one) => one !== null)
}

const byName = ({ channels }: AsyncApiDocument) => channels.toSorted((left, right) => (left.name < right.name ? -1 : 1))

describe('real documents', () => {
  let directory: string
  let documents: readonly AsyncApiDocument[]
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'keymesh-documents-'))
    documents = await readDocuments()
    const eventApis = documents.map(
      (one, index): PortalEventApi => ({
        ...ordersApi(),
        id: eventApiId(`api${index}`),
        viewpoint: one.viewpoint,
        channels: one.channels,
        document: { file: one.file, asyncApiVersion: one.version, title: one.title, json: one.document },
      }),
    )
    const products = [
      visible('orders', {
        versions: [
          version({
            eventApis: eventApis.map(({ id }) => ({ id, version: '1.0.0' })),
            brokers: [brokerId('broker1')],
          }),
        ],
      }),
    ]
    await importCatalogue(api.db, catalogue({ eventApis, products }))
  })
  afterAll(() => rm(directory, { recursive: true }))

  it('are valid as another version, with the channels that they had', async () => {
    expect(documents.length).toBeGreaterThan(4)
    for (const [index, one] of documents.entries()) {
      const asyncApiVersion = index % 2 === 0 ? '2.2.0' : '2.5.0'
      const { body } = await call<Rendered>('GET', document(`api${index}`, `?asyncApiVersion=${asyncApiVersion}`))
      const file = join(directory, `api${index}.json`)
      await writeFile(file, JSON.stringify(body))
      const again = await readAsyncApiDocument(file)
      expect([one.file, again.version, again.viewpoint]).toEqual([one.file, asyncApiVersion, 'client'])
      expect(byName(again)).toEqual(byName(one))
    }
  })
})

// The description is in ../shared/spec, which not every checkout has.
describe.skipIf(!isDescribed)('all answers above', () => {
  it('are as the description of the API says', () => {
    expect([...new Set(problems)]).toEqual([])
  })
})
