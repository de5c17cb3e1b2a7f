import { describe, expect, it } from 'vitest'
import { type AsyncApiContext, renderAsyncApi } from '../../src/domain/asyncapi-render.ts'
import type { JsonObject } from '../../src/domain/portal-file.ts'
import { DIRECT, GUARANTEED } from '../helpers/sample.ts'

const context = (overrides: Partial<AsyncApiContext> = {}): AsyncApiContext => ({
  viewpoint: 'client',
  servers: [],
  product: { id: 'p1', name: 'Orders', version: '1.2.0', applicationDomainId: 'sales' },
  policy: DIRECT,
  asyncApiVersion: null,
  ...overrides,
})

const document = (parts: JsonObject = {}): JsonObject => ({
  asyncapi: '2.6.0',
  info: { title: 'Orders', version: '1.0.0' },
  channels: {},
  ...parts,
})
const withChannels = (channels: JsonObject, components: JsonObject = {}) => document({ channels, components })
const channelsOf = (parts: JsonObject, overrides: Partial<AsyncApiContext> = {}) =>
  renderAsyncApi(parts, context(overrides)).channels

const SERVER = {
  name: 'broker1-smfs',
  url: 'tcps://broker1.example:55443',
  protocol: 'smfs',
  protocolVersion: '3.0',
  description: 'Broker One',
  msgVpnName: 'orders',
}

describe('a rendered AsyncAPI document', () => {
  it('says which product it belongs to', () => {
    expect(renderAsyncApi(document(), context()).info).toEqual({
      title: 'Orders',
      version: '1.0.0',
      'x-ep-event-api-product-id': 'p1',
      'x-ep-event-api-product-name': 'Orders',
      'x-ep-event-api-product-version': '1.2.0',
      'x-ep-application-domain-id': 'sales',
    })
    const { info } = renderAsyncApi(
      document(),
      context({ product: { ...context().product, applicationDomainId: null } }),
    )
    expect(info).not.toHaveProperty('x-ep-application-domain-id')
  })

  it('has the servers of the brokers instead of its own', () => {
    const rendered = renderAsyncApi(
      document({
        servers: { own: { url: 'test.example', protocol: 'mqtt' } },
        channels: { 'a/b': { servers: ['own'], subscribe: {} } },
        components: { servers: { own: {} }, serverVariables: { port: {} }, schemas: { order: {} } },
      }),
      context({ servers: [SERVER] }),
    )
    expect(rendered.servers).toEqual({
      'broker1-smfs': {
        url: 'tcps://broker1.example:55443',
        protocol: 'smfs',
        protocolVersion: '3.0',
        description: 'Broker One',
        bindings: { solace: { msgVpn: 'orders', bindingVersion: '0.3.0' } },
      },
    })
    expect(rendered.channels).toEqual({ 'a/b': { subscribe: expect.anything() } })
    expect(rendered.components).toEqual({ schemas: { order: {} } })
  })

  it.each([
    [null, '2.6.0'],
    ['2.2.0', '2.2.0'],
    ['2.5.0', '2.5.0'],
  ] as const)('asked for as %s is %s', (asyncApiVersion, version) => {
    expect(renderAsyncApi(document(), context({ asyncApiVersion })).asyncapi).toBe(version)
  })

  it('is in the client’s view, whatever the stored one is', () => {
    const stored = document({
      info: { title: 'Orders', version: '1.0.0', 'x-view': 'provider' },
      'x-view': 'provider',
      channels: {
        both: { publish: { summary: 'P' }, subscribe: { summary: 'S' } },
        one: { publish: { summary: 'P' } },
      },
    })
    const rendered = renderAsyncApi(stored, context({ viewpoint: 'provider' }))
    expect(rendered.channels).toEqual({
      both: {
        publish: expect.objectContaining({ summary: 'S' }),
        subscribe: expect.objectContaining({ summary: 'P' }),
      },
      one: { subscribe: expect.objectContaining({ summary: 'P' }) },
    })
    expect(JSON.stringify(rendered)).not.toContain('x-view')
    expect(channelsOf(stored)).toEqual({
      both: {
        publish: expect.objectContaining({ summary: 'P' }),
        subscribe: expect.objectContaining({ summary: 'S' }),
      },
      one: { publish: expect.objectContaining({ summary: 'P' }) },
    })
  })

  it('has its channels in place', () => {
    const channels = channelsOf(
      withChannels(
        {
          'a/b': { $ref: '#/components/channels/a~1b' },
          c: { $ref: '#/x-more/list/1' },
          lost: { $ref: '#/nowhere' },
          loop: { $ref: '#/channels/loop' },
        },
        { channels: { 'a/b': { description: 'A' } } },
      ),
    )
    expect(channels).toMatchObject({ 'a/b': { description: 'A' }, c: {}, lost: {}, loop: {} })
    const elsewhere = document({
      channels: { c: { $ref: '#/x-more/list/1' } },
      'x-more': { list: [{}, { description: 'C' }] },
    })
    expect(channelsOf(elsewhere)).toMatchObject({ c: { description: 'C' } })
  })

  it('has the bindings of the plan, unless it has its own', () => {
    const stored = withChannels({
      a: { publish: {}, subscribe: { bindings: { amqp: {} } } },
      own: { subscribe: { bindings: { solace: { bindingVersion: '0.2.0' } } } },
    })
    const bindingVersion = '0.3.0'
    const direct = { solace: { destinations: [{ destinationType: 'topic', deliveryMode: 'direct' }], bindingVersion } }
    expect(channelsOf(stored)).toEqual({
      a: { publish: { bindings: direct }, subscribe: { bindings: { ...direct, amqp: {} } } },
      own: { subscribe: { bindings: { solace: { bindingVersion: '0.2.0' } } } },
    })
    const policy = { ...GUARANTEED, accessType: 'non-exclusive', maximumTimeToLive: 60, maxMsgSpoolUsage: 5 } as const
    const queue = { accessType: 'nonexclusive', maxTtl: '60', maxMsgSpoolUsage: '5' }
    expect(channelsOf(stored, { policy })).toMatchObject({
      a: {
        publish: { bindings: { solace: { destinations: [{ destinationType: 'topic', deliveryMode: 'persistent' }] } } },
        subscribe: {
          bindings: { solace: { destinations: [{ destinationType: 'queue', deliveryMode: 'persistent', queue }] } },
        },
      },
    })
  })

  it('as 2.2.0 leaves out what came later', () => {
    const stored = withChannels(
      {
        a: {
          publish: { security: [{ key: [] }], message: { messageId: 'm1', name: 'M' } },
          subscribe: {
            message: { oneOf: [{ $ref: '#/components/messages/m2' }, { messageId: 'm3' }, { $ref: '#/x-files/m4' }] },
          },
        },
      },
      {
        messages: { m2: { messageId: 'm2', name: 'N' } },
        messageTraits: { t: { messageId: 't' } },
        operationTraits: { o: { security: [] } },
      },
    )
    const rendered = renderAsyncApi(
      { ...stored, 'x-files': { m4: { messageId: 'm4' } } },
      context({ asyncApiVersion: '2.2.0' }),
    )
    expect(JSON.stringify(rendered)).not.toMatch(/messageId|security/)
    expect(rendered.components).toMatchObject({ messages: { m2: { name: 'N' } } })
    expect(JSON.stringify(renderAsyncApi(stored, context({ asyncApiVersion: '2.5.0' })))).toMatch(
      /messageId.*security/s,
    )
  })

  it('leaves the stored one as it is', () => {
    const stored = withChannels({ a: { publish: { security: [], message: { messageId: 'm' } } } }, { channels: {} })
    const before = structuredClone(stored)
    renderAsyncApi(stored, context({ viewpoint: 'provider', asyncApiVersion: '2.2.0', servers: [SERVER] }))
    expect(stored).toEqual(before)
  })

  it.each<JsonObject>([
    {},
    { channels: 1, info: [], components: 'x' },
    { channels: { a: null, b: [], c: { publish: 'x' } } },
  ])('is made of whatever is stored: %j', (stored) =>
    expect(() => renderAsyncApi(stored, context({ asyncApiVersion: '2.2.0' }))).not.toThrow(),
  )
})
