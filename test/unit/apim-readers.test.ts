import { describe, expect, it } from 'vitest'
import { readGateway } from '../../src/sources/apim-gateways.ts'
import { readProduct } from '../../src/sources/apim-products.ts'
import { readAccessRequests, readCredentials, readRegistration } from '../../src/sources/apim-registrations.ts'
import { Findings } from '../../src/sources/findings.ts'
import {
  listedApi,
  listedCredential,
  listedGateway,
  listedPlan,
  listedProduct,
  listedRegistration,
  listedRequest,
  listedService,
} from '../helpers/apim-answers.ts'

type Fields = Readonly<Record<string, unknown>>

const without = (object: Fields, ...names: readonly string[]): Fields =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

function product(item: unknown) {
  const findings = new Findings()
  const reading = readProduct(item, findings, { asDetail: true })
  return { findings, reading, listed: reading.kind === 'read' ? reading.listed : null }
}

describe('a product of a remote catalogue', () => {
  it('is read as it is', () => {
    const { listed, findings } = product(
      listedProduct('orders', {
        name: 'Orders',
        version: '1.2.0',
        applicationDomainId: 'sales',
        applicationDomainName: 'Sales',
        customAttributes: [{ name: 'tier', value: 'one' }],
        attributes: [{ name: 'colour', value: 'red' }],
        solaceMessagingServices: [listedService('broker-1'), listedService('broker-2')],
      }),
    )
    expect(listed).toMatchObject({
      product: {
        id: 'orders',
        name: 'Orders',
        applicationDomainId: 'sales',
        shared: true,
        attributes: [{ name: 'colour' }],
      },
      domain: { id: 'sales', name: 'Sales' },
      version: {
        version: '1.2.0',
        state: 'RELEASED',
        approvalType: 'automatic',
        public: true,
        eventApis: [{ id: 'orders-api', version: '1.0.0' }],
        plans: [{ id: 'gold', classOfServicePolicy: { messageDeliveryMode: 'guaranteed', maxMsgSpoolUsage: 500 } }],
        brokers: ['broker-1', 'broker-2'],
        customAttributes: [{ name: 'tier', value: 'one' }],
      },
    })
    expect(findings.warnings).toEqual([])
  })

  const full = listedProduct('orders')
  it.each<[sentence: string, item: Fields]>([
    ['with fields that nobody knows', { ...full, sparkle: true, plans: [listedPlan('gold', { glow: 1 })] }],
    [
      'under vendor-neutral names',
      {
        ...without(full, 'solaceMessagingServices'),
        vendorMessagingServices: [listedService('broker-1')],
        plans: [
          {
            ...without(listedPlan('gold'), 'solaceClassOfServicePolicy'),
            vendorClassOfServicePolicy: listedPlan('gold').solaceClassOfServicePolicy,
          },
        ],
      },
    ],
    [
      'with nulls for what is optional',
      { ...full, description: null, customAttributes: null, attributes: null, createdBy: null },
    ],
    [
      'without what is optional',
      without(full, 'description', 'displayName', 'customAttributes', 'attributes', 'apiParameters'),
    ],
    ['with a state in other letters', { ...full, state: 'released' }],
    ['with attributes of another shape', { ...full, attributes: ['red', { name: 1 }] }],
    [
      'with a protocol that nobody knows',
      { ...full, solaceMessagingServices: [listedService('broker-1', { supportedProtocols: ['telepathy'] })] },
    ],
  ])('is read %s', (_sentence, item) => {
    const { listed, findings } = product(item)
    expect([findings.warnings, findings.unread]).toEqual([[], []])
    expect(listed?.version).toMatchObject({
      state: 'RELEASED',
      plans: [{ id: 'gold', classOfServicePolicy: { messageDeliveryMode: 'guaranteed' } }],
      brokers: ['broker-1'],
    })
  })

  it('takes the defaults of the API for a plan without a policy', () => {
    const { listed } = product({ ...full, plans: [{ id: 'bare' }] })
    expect(listed?.version.plans).toEqual([
      {
        id: 'bare',
        name: 'bare',
        classOfServicePolicy: {
          messageDeliveryMode: 'direct',
          accessType: 'exclusive',
          queueType: 'combined',
          maximumTimeToLive: 86_400,
          maxMsgSpoolUsage: 500,
        },
      },
    ])
  })

  it('waits for approval when the approval type is unknown', () => {
    expect(product({ ...full, approvalType: 'by-vote' }).listed?.version.approvalType).toBe('manual')
  })

  it.each<[sentence: string, item: Fields, warning: RegExp, left: Fields]>([
    [
      'a plan',
      { ...full, plans: [listedPlan('gold'), listedPlan('odd', {}, { queueType: 'spiral' })] },
      /plan without a usable .*queueType/,
      { plans: [{ id: 'gold' }] },
    ],
    [
      'an Event API',
      { ...full, apis: [listedApi('orders-api'), { name: 'x' }] },
      /Event API without a usable id/,
      { eventApis: [{ id: 'orders-api' }] },
    ],
    [
      'a messaging service',
      { ...full, solaceMessagingServices: [listedService('broker-1'), {}] },
      /messaging service without a usable id/,
      { brokers: ['broker-1'] },
    ],
  ])('leaves out %s that cannot be used, with a warning', (_what, item, warning, left) => {
    const { listed, findings } = product(item)
    expect(listed?.version).toMatchObject(left)
    expect(findings.warnings).toEqual([expect.stringMatching(warning)])
    expect(findings.unread).toEqual([])
  })

  it.each<[sentence: string, item: unknown, unread: readonly Fields[]]>([
    ['no usable id', { ...full, id: '../secrets' }, []],
    ['nothing in it', null, []],
    ['no version', without(full, 'version'), [{ kind: 'product', id: 'orders' }]],
    ['a version that is none', { ...full, version: 'newest' }, [{ kind: 'product', id: 'orders' }]],
    ['plans of another shape', { ...full, plans: 'gold' }, [{ kind: 'product', id: 'orders' }]],
    ['brokers of another type', { ...full, brokerType: 'kafka' }, [{ kind: 'product', id: 'orders' }]],
    ['no plans even in its detail', without(full, 'plans'), [{ kind: 'product', id: 'orders' }]],
    [
      'a state that nobody knows',
      { ...full, state: 'HAUNTED' },
      [{ kind: 'productVersion', id: 'orders', version: '1.0.0' }],
    ],
  ])('is left as stored, with a warning, when it has %s', (_sentence, item, unread) => {
    const { listed, findings } = product(item)
    expect(listed).toBeNull()
    expect(findings.warnings).toHaveLength(1)
    expect(findings.unread).toEqual(unread)
  })

  it('is gone when it says that it was deleted', () => {
    const { listed, findings } = product({ ...full, state: 'DELETED' })
    expect([listed, findings.warnings, findings.unread]).toEqual([null, [], []])
  })

  it('is asked for again when the list shows only a part of it', () => {
    const findings = new Findings()
    expect(readProduct(without(full, 'apis'), findings)).toEqual({ kind: 'summary', id: 'orders' })
    expect(findings.warnings).toEqual([])
  })
})

function registration(item: unknown) {
  const findings = new Findings()
  return { findings, ...readRegistration(item, findings) }
}

describe('a registration of a remote catalogue', () => {
  const full = listedRegistration('app-1')

  it('is read as it is', () => {
    const { listed, findings } = registration({
      ...full,
      sourceOwner: 'ann',
      applicationDomainId: 'sales',
      filters: [{ name: 'region', values: ['EU', 'US*'] }],
      attributes: [{ name: 'colour', value: 'red' }],
    })
    expect(listed?.registration).toEqual({
      id: 'app-1',
      name: 'app-1',
      source: 'portal',
      sourceOwner: 'ann',
      applicationDomainId: 'sales',
      filters: { region: ['EU', 'US*'] },
      attributes: [{ name: 'colour', value: 'red' }],
    })
    expect(listed?.accessRequests).toHaveLength(1)
    expect(findings.warnings).toEqual([])
  })

  it('is read without what is optional, and says which parts did not come', () => {
    const { listed } = registration({ registrationId: 'app-1', applicationDomainId: 'none', more: {} })
    expect(listed).toMatchObject({
      registration: { name: 'app-1', source: 'remote', sourceOwner: null, applicationDomainId: null, filters: {} },
      accessRequests: null,
      credentials: null,
    })
  })

  it.each<[sentence: string, item: unknown, id: string | null]>([
    ['no id', without(full, 'registrationId'), null],
    ['an id with a line break', { ...full, registrationId: 'app\n1' }, null],
    ['a filter that would widen topics', { ...full, filters: [{ name: 'region', values: ['>'] }] }, 'app-1'],
    ['a filter without values', { ...full, filters: [{ name: 'region', values: [] }] }, 'app-1'],
    ['access requests of another shape', { ...full, accessRequests: {} }, 'app-1'],
  ])('is left as stored, with a warning, when it has %s', (_sentence, item, id) => {
    const { findings, ...reading } = registration(item)
    expect(reading).toEqual({ id, listed: null })
    expect(findings.warnings).toHaveLength(1)
    expect(findings.unread).toEqual(id === null ? [] : [{ kind: 'registration', id }])
  })
})

describe('access requests of a remote catalogue', () => {
  const read = (...items: readonly unknown[]) => {
    const findings = new Findings()
    return { requests: readAccessRequests(items, 'app-1', findings), findings }
  }

  it.each([
    ['APPROVED', 'APPROVED'],
    ['LIVE', 'APPROVED'],
    ['Live', 'APPROVED'],
    ['PENDING_APPROVAL', 'PENDING_APPROVAL'],
    ['Pending Approval', 'PENDING_APPROVAL'],
    ['AWAITING_APPROVAL', 'PENDING_APPROVAL'],
    ['REJECTED', 'REJECTED'],
    ['REVOKED', 'REVOKED'],
    ['ERROR', null],
  ])('in state %s are %s here', (state, expected) => {
    const { requests, findings } = read(listedRequest('request-1', { state }))
    expect(requests).toMatchObject([{ id: 'request-1', state: expected, productVersion: '1.0.0', planId: 'gold' }])
    expect(findings.warnings).toEqual([])
  })

  it.each<[sentence: string, fields: Fields]>([
    ['in an unknown state', { state: 'HAUNTED' }],
    ['in the state of an object', { state: 'CONSTRUCTOR' }],
    ['without a state', { state: undefined }],
    ['without a product version', { eventApiProductVersion: undefined }],
    ['with a filter that would widen topics', { filters: [{ name: 'region', values: ['a/b'] }] }],
    ['with half a filter', { filters: [{ name: 'region' }] }],
  ])('%s are left as stored, with a warning, beside the others', (_sentence, fields) => {
    const { requests, findings } = read(listedRequest('odd', fields), listedRequest('request-1'))
    expect(requests).toMatchObject([{ id: 'request-1' }])
    expect(findings.unread).toEqual([{ kind: 'accessRequest', registrationId: 'app-1', id: 'odd' }])
    expect(findings.warnings).toHaveLength(1)
  })

  it('without an id leave the whole registration as stored', () => {
    expect(read({ state: 'LIVE' }).findings.unread).toEqual([{ kind: 'registration', id: 'app-1' }])
  })
})

describe('credentials of a remote catalogue', () => {
  const read = (...items: readonly unknown[]) => {
    const findings = new Findings()
    return { credentials: readCredentials(items, 'app-1', findings), findings }
  }

  it.each<[expiresAt: unknown, expected: number | null]>([
    [-1, null],
    [null, null],
    [undefined, null],
    [0, null],
    [1_900_000_000_000, 1_900_000_000_000],
  ])('that expire at %s', (expiresAt, expected) => {
    const { credentials } = read(listedCredential('key-1', { expiresAt }))
    expect(credentials).toMatchObject([{ name: 'name-of-key-1', consumerKey: 'key-1', expiresAtMs: expected }])
    expect(credentials[0]?.consumerSecret?.reveal()).toBe('secret-of-key-1')
  })

  it('have their key for a name when they have none, and never one name twice', () => {
    const items = ['key-2', 'key-3', 'key-1'].map((key) =>
      listedCredential(key, { name: key === 'key-1' ? null : 'main' }),
    )
    const names = ['key-1', 'main', 'main (key-3)']
    expect(read(...items).credentials.map(({ name }) => name)).toEqual(names)
    expect(read(...items.toReversed()).credentials.map(({ name }) => name)).toEqual(names)
  })

  it.each<[sentence: string, secret: Fields]>([
    ['without a secret', { consumerKey: 'key-1' }],
    ['with a secret that no broker takes', { consumerKey: 'key-1', consumerSecret: 'x'.repeat(129) }],
    ['with a secret of two lines', { consumerKey: 'key-1', consumerSecret: 'one\ntwo' }],
  ])('%s are left as stored, with a warning that does not tell it', (_sentence, secret) => {
    const { credentials, findings } = read(listedCredential('key-1', { secret }), listedCredential('key-2'))
    expect(credentials).toMatchObject([{ consumerKey: 'key-2' }])
    expect(findings.unread).toEqual([{ kind: 'credential', registrationId: 'app-1', consumerKey: 'key-1' }])
    expect(findings.warnings.join()).not.toMatch(/xxx|one|secret-of/)
  })

  it.each<[sentence: string, item: unknown]>([
    ['without a key', listedCredential('key-1', { secret: {} })],
    ["for a user that is the broker's own", listedCredential('#client')],
    ['of another shape', 'key-1'],
  ])('%s leave the whole registration as stored', (_sentence, item) => {
    expect(read(item).findings.unread).toEqual([{ kind: 'registration', id: 'app-1' }])
  })
})

describe('a gateway of a remote catalogue', () => {
  const connection = (protocol: string, url: string) => ({ name: protocol, protocol, url })
  const read = (...connections: readonly Fields[]) => {
    const findings = new Findings()
    return {
      gateway: readGateway(listedGateway('broker-1', { messagingServiceConnections: connections }), findings),
      findings,
    }
  }

  it.each<[sentence: string, url: string, protocol: string, host: string, port: number]>([
    ['by name', 'tcps://broker.example:55443', 'smfs', 'broker.example', 55443],
    ['by address', 'ssl://10.0.0.1:8883', 'secure-mqtt', '10.0.0.1', 8883],
    ['by address of IPv6', 'tcp://[fd00::1]:1883', 'mqtt', 'fd00::1', 1883],
    ['with a path', 'wss://broker.example:8443/mqtt', 'secure-mqttws', 'broker.example', 8443],
    ['on the usual port', 'https://broker.example', 'https', 'broker.example', 443],
  ])('says where clients connect %s', (_sentence, url, protocol, host, port) => {
    const { gateway, findings } = read(connection(protocol, url))
    expect(gateway?.messaging).toEqual({ host, protocols: [{ protocol, port }] })
    expect(findings.warnings).toEqual([])
  })

  it.each<[sentence: string, odd: Fields]>([
    ['an unknown protocol', connection('telepathy', 'esp://broker.example:1')],
    ['another host', connection('mqtt', 'tcp://other.example:1883')],
    ['an address without a port', connection('mqtt', 'tcp://broker.example')],
    ['no address', connection('mqtt', 'broker')],
    ['nothing', {}],
  ])('leaves out a connection with %s, with a warning', (_sentence, odd) => {
    const { gateway, findings } = read(connection('smfs', 'tcps://broker.example:55443'), odd)
    expect(gateway?.messaging?.protocols).toEqual([{ protocol: 'smfs', port: 55443 }])
    expect(findings.warnings).toHaveLength(1)
  })

  it('without any connection says nothing', () => {
    expect(read().gateway).toEqual({ id: 'broker-1', name: 'broker-1', messaging: null })
  })

  it('without an id is left out', () => {
    const findings = new Findings()
    expect(readGateway({ name: 'x' }, findings)).toBeNull()
    expect(findings.warnings).toHaveLength(1)
  })
})

describe('warnings', () => {
  it('are told once each, and not without end', () => {
    const findings = new Findings()
    for (let index = 0; index < 1000; index += 1) findings.warn(`warning ${index % 500}`)
    expect(findings.warnings).toHaveLength(201)
    expect(findings.warnings.at(-1)).toMatch(/^… and \d+ more warnings$/)
  })
})
