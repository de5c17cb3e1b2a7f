import { describe, expect, it } from 'vitest'
import { InvalidInputError } from '../../src/domain/errors.ts'
import type { DocumentRecord, KnownCatalogue } from '../../src/domain/remote-catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import { type RemoteReadOptions, readRemoteCatalogue } from '../../src/sources/apim-catalogue.ts'
import { ApimClient } from '../../src/sources/apim-client.ts'
import type { UnderstandDocument } from '../../src/sources/apim-documents.ts'
import { fixedToken } from '../../src/sources/apim-tokens.ts'
import { BoundedHttp } from '../../src/sources/bounded-http.ts'
import { sendJson, startDouble } from '../contract/semp-double.ts'
import {
  asyncApi,
  listedApi,
  listedGateway,
  listedPlan,
  listedProduct,
  listedRegistration,
  listedRequest,
} from '../helpers/apim-answers.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const HOUR_MS = 3_600_000

type Fields = Readonly<Record<string, unknown>>

/** By path below the APIM API: a list, an object, or a bare document. What is not here is not there. */
interface RemoteContent {
  readonly lists?: Readonly<Record<string, readonly unknown[]>>
  readonly objects?: Readonly<Record<string, unknown>>
  readonly documents?: Readonly<Record<string, unknown>>
  /** Lists that are not there. */
  readonly absent?: readonly string[]
  /** Answers a list instead; how often it was walked, from 1. */
  readonly walk?: (path: string, count: number) => readonly unknown[] | undefined
}

interface Pass extends AsyncDisposable {
  readonly asked: string[]
  read(options?: Partial<RemoteReadOptions>): ReturnType<typeof readRemoteCatalogue>
}

const NOTHING_KNOWN: KnownCatalogue = { products: new Set(), registrations: new Set(), documents: new Map() }

const understand: UnderstandDocument = async (_name, text) => {
  const json = JSON.parse(text) as { readonly channels?: Fields; readonly broken?: string }
  if (json.broken !== undefined) throw new InvalidInputError('The document', [{ message: json.broken }])
  const channels = Object.keys(json.channels ?? {}).map((name) => ({
    name,
    clientMayPublish: false,
    clientMaySubscribe: true,
    parameterEnums: {},
  }))
  return { asyncApiVersion: '2.6.0', title: 'Orders', viewpoint: 'client', channels, json: JSON.parse(text) }
}

async function withRemote(content: RemoteContent): Promise<Pass> {
  const asked: string[] = []
  const walks = new Map<string, number>()
  const lists = { eventApiProducts: [], appRegistrations: [], gateways: [], ...content.lists } as Record<
    string,
    readonly unknown[]
  >
  const isThere = (path: string): boolean => Object.hasOwn(lists, path) && content.absent?.includes(path) !== true
  const double = await startDouble(({ url }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://double')
    const path = decodeURIComponent(pathname.replace('/api/v2/apim/', ''))
    asked.push(path)
    const pageNumber = Number(searchParams.get('pageNumber'))
    if (pageNumber === 1) walks.set(path, (walks.get(path) ?? 0) + 1)
    const list = content.walk?.(path, walks.get(path) ?? 1) ?? (isThere(path) ? lists[path] : undefined)
    if (list !== undefined) {
      const start = (pageNumber - 1) * 100
      const nextPage = list.length > start + 100 ? pageNumber + 1 : null
      return sendJson(response, 200, {
        data: list.slice(start, start + 100),
        meta: { pagination: { pageNumber, nextPage } },
      })
    }
    const found = content.objects?.[path]
    if (found !== undefined) return sendJson(response, 200, { data: found, meta: {} })
    const document = content.documents?.[path]
    if (document !== undefined) return sendJson(response, 200, document)
    sendJson(response, 404, { message: `There is no ${path}.`, errorId: 'x' })
  })
  const http = new BoundedHttp({ timeoutMs: 5_000, maxConnections: 4 })
  const client = new ApimClient({ http, tokens: fixedToken(new Secret('token')), url: double.url, maxRepeats: 0 })
  return {
    asked,
    read: (options) => readRemoteCatalogue({ client, known: NOTHING_KNOWN, understand, nowMs: NOW_MS, ...options }),
    async [Symbol.asyncDispose]() {
      await http.close()
      await double[Symbol.asyncDispose]()
    },
  }
}

const DOCUMENT = 'eventApiProducts/orders/plans/gold/eventApis/orders-api'
const ONE_PRODUCT: RemoteContent = {
  lists: { eventApiProducts: [listedProduct('orders')], appRegistrations: [listedRegistration('app-1')] },
  documents: { [DOCUMENT]: asyncApi(['orders/placed']) },
}
const known = (parts: { products?: readonly string[]; registrations?: readonly string[] }): KnownCatalogue => ({
  ...NOTHING_KNOWN,
  products: new Set(parts.products),
  registrations: new Set(parts.registrations),
})

describe('a pass over a remote catalogue', () => {
  it('reads everything that there is', async () => {
    await using remote = await withRemote({
      ...ONE_PRODUCT,
      lists: { ...ONE_PRODUCT.lists, gateways: [listedGateway('broker-1')] },
    })
    const catalogue = await remote.read()
    expect(catalogue).toMatchObject({
      products: [{ id: 'orders', versions: [{ version: '1.0.0', brokers: ['broker-1'] }] }],
      eventApis: [{ id: 'orders-api', version: '1.0.0', channels: [{ name: 'orders/placed' }] }],
      registrations: [
        { id: 'app-1', accessRequests: [{ id: 'request-1' }], credentials: [{ consumerKey: 'key-of-app-1' }] },
      ],
      brokers: [{ id: 'broker-1', messaging: { host: 'broker-1.example' } }],
      documents: [{ id: 'orders-api', version: '1.0.0', problem: null, readAtMs: NOW_MS }],
      unread: [],
      warnings: [],
    })
    expect(remote.asked).toEqual(['eventApiProducts', 'appRegistrations', 'gateways', DOCUMENT])
  })

  it('goes without gateways where there are none', async () => {
    await using remote = await withRemote({ ...ONE_PRODUCT, absent: ['gateways'] })
    const catalogue = await remote.read()
    expect(catalogue.brokers).toEqual([{ id: 'broker-1', name: 'broker-1', messaging: null }])
    expect(catalogue.warnings).toEqual([expect.stringContaining('gateways cannot be read')])
  })

  it('asks for what a list shows in part only', async () => {
    const { plans: _plans, apis: _apis, ...summary } = listedProduct('orders')
    const { accessRequests, credentials, ...bare } = listedRegistration('app-1')
    await using remote = await withRemote({
      lists: {
        eventApiProducts: [summary],
        appRegistrations: [bare],
        'appRegistrations/app-1/accessRequests': accessRequests as readonly unknown[],
        'appRegistrations/app-1/credentials': credentials as readonly unknown[],
      },
      objects: { 'eventApiProducts/orders': listedProduct('orders') },
      documents: ONE_PRODUCT.documents ?? {},
    })
    expect(await remote.read()).toMatchObject({
      products: [{ versions: [{ plans: [{ id: 'gold' }] }] }],
      registrations: [{ accessRequests: [{ id: 'request-1' }], credentials: [{ consumerKey: 'key-of-app-1' }] }],
      warnings: [],
    })
  })

  it('takes the newest version when a product is listed in several', async () => {
    const versions = ['1.9.0', '1.10.0', '1.2.0'].map((version) => listedProduct('orders', { version, apis: [] }))
    await using remote = await withRemote({ lists: { eventApiProducts: versions } })
    expect((await remote.read()).products).toMatchObject([{ versions: [{ version: '1.10.0' }] }])
  })

  it('is an error as a whole when one part of it fails', async () => {
    await using remote = await withRemote({ ...ONE_PRODUCT, absent: ['appRegistrations'] })
    await expect(remote.read()).rejects.toMatchObject({ code: 'REMOTE_NOT_FOUND' })
  })
})

describe('what is stored and not listed', () => {
  it('is asked for by its name, and gone when the service says so', async () => {
    await using remote = await withRemote({
      lists: { eventApiProducts: [], appRegistrations: [listedRegistration('app-1', { accessRequests: [] })] },
      objects: {
        'eventApiProducts/missed': listedProduct('missed', { apis: [] }),
        'appRegistrations/app-3': listedRegistration('app-3', { accessRequests: [] }),
      },
    })
    const catalogue = await remote.read({
      known: known({ products: ['missed', 'deleted'], registrations: ['app-1', 'app-2222', 'app-3'] }),
    })
    expect(catalogue.products.map(({ id }) => id)).toEqual(['missed'])
    expect(catalogue.registrations.map(({ id }) => id)).toEqual(['app-1', 'app-3'])
    expect(catalogue.unread).toEqual([])
    expect(remote.asked).toEqual(expect.arrayContaining(['eventApiProducts/deleted', 'appRegistrations/app-2222']))
  })

  it.each<[sentence: string, ids: readonly string[]]>([
    ['it is much', Array.from({ length: 60 }, (_, index) => `app-${index + 100}`)],
    ['an id of it may not stand in a path', ['app@north', 'app@south', 'app-1']],
  ])('is looked for in a second walk when %s', async (_sentence, ids) => {
    const items = ids.map((id) => listedRegistration(id, { accessRequests: [], credentials: [] }))
    await using remote = await withRemote({
      // Somebody deleted one between two pages: in the first walk the others are missing.
      walk: (path, count) => (path !== 'appRegistrations' ? undefined : count === 1 ? [] : items.slice(0, -1)),
    })
    const catalogue = await remote.read({ known: known({ registrations: ids }) })
    expect(catalogue.registrations.map(({ id }) => id)).toEqual(ids.slice(0, -1))
    expect(remote.asked.filter((path) => path.startsWith('appRegistrations/'))).toEqual([])
  })

  it('is not asked for when it was listed and could not be read', async () => {
    await using remote = await withRemote({
      lists: {
        eventApiProducts: [listedProduct('orders', { version: 'none' })],
        appRegistrations: [{ registrationId: 'app-1', filters: 1 }],
      },
    })
    const catalogue = await remote.read({ known: known({ products: ['orders'], registrations: ['app-1'] }) })
    expect(catalogue.unread).toEqual([
      { kind: 'product', id: 'orders' },
      { kind: 'registration', id: 'app-1' },
    ])
    expect(remote.asked).toEqual(['eventApiProducts', 'appRegistrations', 'gateways'])
  })
})

describe('a version that is not shown', () => {
  const asking = (fields: Fields = {}) =>
    listedRegistration('app-1', {
      accessRequests: [listedRequest('request-1', { eventApiProductVersion: '0.9.0', ...fields })],
    })
  const HISTORY = 'eventApiProducts/orders/history/0.9.0'
  const OF_REQUEST = 'appRegistrations/app-1/accessRequests/request-1/eventApis'

  it('is read from the history when a request is for it, with its documents by the request', async () => {
    await using remote = await withRemote({
      ...ONE_PRODUCT,
      lists: { eventApiProducts: [listedProduct('orders')], appRegistrations: [asking(), asking()] },
      objects: {
        [HISTORY]: listedProduct('orders', { version: '0.9.0', state: 'DEPRECATED', apis: [listedApi('old-api')] }),
      },
      documents: { ...ONE_PRODUCT.documents, [`${OF_REQUEST}/old-api`]: asyncApi(['old/placed']) },
    })
    const { products, eventApis, warnings } = await remote.read()
    expect(products).toMatchObject([{ versions: [{ version: '1.0.0' }, { version: '0.9.0', state: 'DEPRECATED' }] }])
    expect(eventApis.map(({ id }) => id)).toEqual(['old-api', 'orders-api'])
    expect(warnings).toEqual([])
    expect(remote.asked.filter((path) => path === HISTORY)).toHaveLength(1)
  })

  it.each(['REJECTED', 'REVOKED'])('is not asked for by a request that is %s', async (state) => {
    await using remote = await withRemote({ lists: { appRegistrations: [asking({ state })] } })
    expect((await remote.read()).warnings).toEqual([])
    expect(remote.asked).not.toContain(HISTORY)
  })

  it('stays as stored when it is hidden: requests for it still have their Event APIs', async () => {
    await using remote = await withRemote({
      lists: { appRegistrations: [asking()], [OF_REQUEST]: [listedApi('old-api')] },
    })
    const { products, unread, warnings } = await remote.read()
    expect([products, unread]).toEqual([[], [{ kind: 'productVersion', id: 'orders', version: '0.9.0' }]])
    expect(warnings).toEqual([expect.stringContaining('is asked for and not shown')])
  })

  it('is gone when requests for it have nothing left', async () => {
    await using remote = await withRemote({ lists: { appRegistrations: [asking()], [OF_REQUEST]: [] } })
    const { products, unread, warnings } = await remote.read()
    expect([products, unread, warnings]).toEqual([[], [], []])
  })
})

describe('the document of an Event API', () => {
  const recordOf = async (remote: Pass): Promise<DocumentRecord> => {
    const [document] = (await remote.read()).documents
    if (document === undefined) throw new Error('no document was read')
    return document
  }
  const knowing = (record: DocumentRecord): KnownCatalogue => ({
    ...NOTHING_KNOWN,
    documents: new Map([['orders-api@1.0.0', record]]),
  })
  const withProduct = (fields: Fields, document: unknown = asyncApi(['orders/placed'])): RemoteContent => ({
    lists: { eventApiProducts: [listedProduct('orders', fields)] },
    documents: { [DOCUMENT]: document },
  })

  it.each<[sentence: string, nowMs: number, fields: Fields, isRead: boolean]>([
    ['not within the hour', NOW_MS + HOUR_MS - 1, {}, false],
    ['after an hour', NOW_MS + HOUR_MS, {}, true],
    ['when its description changed', NOW_MS + 1, { apis: [listedApi('orders-api', { description: 'new' })] }, true],
    ['when parameters of the product changed', NOW_MS + 1, { apiParameters: [{ name: 'region' }] }, true],
    [
      'not when only plans of the product changed',
      NOW_MS + 1,
      { plans: [listedPlan('gold'), listedPlan('silver')] },
      false,
    ],
  ])('is asked for again %s', async (_sentence, nowMs, fields, isRead) => {
    await using before = await withRemote(withProduct({}))
    const record = await recordOf(before)
    await using remote = await withRemote(withProduct(fields))
    await remote.read({ known: knowing(record), nowMs })
    expect(remote.asked.includes(DOCUMENT)).toBe(isRead)
  })

  it('is not looked into when it is the same, whatever plan and product show it', async () => {
    await using before = await withRemote(withProduct({}))
    const record = await recordOf(before)
    const shown = asyncApi(['orders/placed'], {
      info: {
        title: 'Orders',
        version: '1.0.0',
        'x-ep-event-api-product-name': 'Bookings',
        'x-ep-application-domain-id': 'x',
      },
      servers: {},
      channels: {
        'orders/placed': {
          servers: ['one'],
          subscribe: { message: { payload: {} }, bindings: { solace: { bindingVersion: '0.3.0' } } },
        },
      },
    })
    await using remote = await withRemote(withProduct({}, shown))
    const { eventApis, documents } = await remote.read({ known: knowing(record), nowMs: NOW_MS + HOUR_MS })
    expect(eventApis).toEqual([])
    expect(documents).toEqual([{ ...record, readAtMs: NOW_MS + HOUR_MS }])
  })

  it('is taken anew when it changed', async () => {
    await using before = await withRemote(withProduct({}))
    const record = await recordOf(before)
    await using remote = await withRemote(withProduct({}, asyncApi(['orders/paid'])))
    const { eventApis } = await remote.read({ known: knowing(record), nowMs: NOW_MS + HOUR_MS })
    expect(eventApis).toMatchObject([{ id: 'orders-api', channels: [{ name: 'orders/paid' }] }])
  })

  it('that cannot be used is told of in every pass, and judged again only when it changed', async () => {
    const broken = { ...asyncApi([]), broken: 'it has no head' }
    await using before = await withRemote(withProduct({}, broken))
    const first = await before.read()
    expect(first.eventApis).toEqual([])
    expect(first.warnings).toEqual([
      expect.stringContaining('cannot be used, what is stored of it stays: it has no head'),
    ])
    const [record] = first.documents
    if (record === undefined) throw new Error('nothing is remembered')
    for (const nowMs of [NOW_MS + 1, NOW_MS + HOUR_MS]) {
      await using remote = await withRemote(withProduct({}, broken))
      const judge: UnderstandDocument = () => Promise.reject(new Error('it was judged again'))
      const again = await remote.read({ known: knowing(record), understand: judge, nowMs })
      expect(again.warnings).toEqual(first.warnings)
    }
    await using mended = await withRemote(withProduct({}))
    const { eventApis, warnings } = await mended.read({ known: knowing(record), nowMs: NOW_MS + HOUR_MS })
    expect(eventApis).toHaveLength(1)
    expect(warnings).toEqual([])
  })

  it('that is not there is told of', async () => {
    await using remote = await withRemote({ lists: { eventApiProducts: [listedProduct('orders')] } })
    const { eventApis, documents, warnings } = await remote.read()
    expect([eventApis, documents]).toEqual([[], []])
    expect(warnings).toEqual([expect.stringContaining('The document of Event API orders-api 1.0.0 is not there')])
  })

  it('is read once for all products that have it', async () => {
    await using remote = await withRemote({
      lists: { eventApiProducts: [listedProduct('orders'), listedProduct('bookings')] },
      documents: { [DOCUMENT]: asyncApi(['orders/placed']) },
    })
    expect((await remote.read()).eventApis).toHaveLength(1)
    expect(remote.asked.filter((path) => path.includes('/eventApis/'))).toEqual([DOCUMENT])
  })
})
