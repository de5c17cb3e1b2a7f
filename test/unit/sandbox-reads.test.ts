import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { FULL_PAGES } from '../../src/sandbox/semp-paging.ts'
import { SempTestClient } from './sandbox-client.ts'

const QUEUE_COUNT = 250

let sandbox: Sandbox
let full: SempTestClient
let uneven: SempTestClient

beforeAll(async () => {
  sandbox = await startSandbox({
    brokers: [{ paging: FULL_PAGES }, { paging: { shortPageRate: 0.4, emptyPageRate: 0.3 } }],
  })
  for (const { state } of sandbox.brokers) {
    for (let index = 0; index < QUEUE_COUNT; index += 1) {
      state.queues.put(`queue/${index}`, { maxTtl: index, permission: index % 2 === 0 ? 'consume' : 'no-access' })
    }
    for (const name of ['ann', 'anton', 'bob', 'a.b', 'x,y']) {
      state.clientUsernames.put(name, { enabled: name !== 'bob', password: 'p' })
    }
  }
  full = new SempTestClient(sandbox.broker(0))
  uneven = new SempTestClient(sandbox.broker(1))
})
afterAll(() => sandbox.close())

const namesOf = (objects: readonly Record<string, unknown>[], attribute: string) =>
  objects.map((object) => String(object[attribute])).sort()

describe('where', () => {
  const usernames = ['a.b', 'ann', 'anton', 'bob', 'default', 'x,y']
  it.each<[string, string, readonly string[]]>([
    ['an equal text is found', 'clientUsername==ann', ['ann']],
    ['a dot is only a dot, beside a star too', 'clientUsername==a.*', ['a.b']],
    ['an encoded comma belongs to the value', 'clientUsername==x%2Cy', ['x,y']],
    ['a star at the end stands for any text', 'clientUsername==an*', ['ann', 'anton']],
    ['a star in the middle stands for any text', 'clientUsername==a*n', ['ann', 'anton']],
    ['!= turns a wildcard around', 'clientUsername!=a*', ['bob', 'default', 'x,y']],
    ['a boolean is compared', 'enabled==false', ['bob']],
    ['a boolean is compared with !=', 'enabled!=false', usernames.filter((name) => name !== 'bob')],
    ['a comma means and', 'enabled==true,clientUsername==*n*', ['ann', 'anton']],
    ['the message VPN can be asked for', 'msgVpnName==sandbox', usernames],
    ['nothing may match', 'clientUsername==nobody', []],
  ])('%s', async (_sentence, where, expected) => {
    const pages = await full.pages(`clientUsernames?count=100&where=${where}`)
    expect(namesOf(pages.flat(), 'clientUsername')).toEqual([...expected])
  })

  it.each<[string, string, number]>([
    ['== on a number', 'maxTtl==7', 1],
    ['!= on a number', 'maxTtl!=7', QUEUE_COUNT - 1],
    ['< leaves the bound out', 'maxTtl<7', 7],
    ['<= holds the bound', 'maxTtl%3C=7', 8],
    ['> leaves the bound out', 'maxTtl%3E247', 2],
    ['>= holds the bound', 'maxTtl>=247', 3],
    ['a range is two conditions', 'maxTtl>=10,maxTtl<20,permission==consume', 5],
  ])('%s', async (_sentence, where, expected) => {
    expect((await full.pages(`queues?count=100&select=queueName&where=${where}`)).flat()).toHaveLength(expected)
  })
})

describe('select', () => {
  const ann = { clientUsername: 'ann', enabled: true, aclProfileName: 'default', clientProfileName: 'default' }
  it.each<[string, string, object]>([
    ['names choose', 'enabled,clientUsername', { clientUsername: 'ann', enabled: true }],
    ['an encoded comma separates as well', 'enabled%2CclientUsername', { clientUsername: 'ann', enabled: true }],
    ['a star chooses by pattern', '*ProfileName', { aclProfileName: 'default', clientProfileName: 'default' }],
    ['a minus alone leaves out', '-subscription*,-guaranteed*', { ...ann, msgVpnName: 'sandbox' }],
    ['a minus takes from what is chosen', '*ProfileName,-acl*', { clientProfileName: 'default' }],
    ['a password is an attribute, but not shown', 'password', {}],
  ])('%s', async (_sentence, select, data) => {
    expect((await full.send(['GET', `clientUsernames/ann?select=${select}`])).data).toEqual(data)
  })

  it('reaches into a threshold with a dot', async () => {
    const reply = await full.send(['GET', 'queues/queue%2F1?select=queueName,eventBindCountThreshold.set*'])
    expect(reply.data).toEqual({ queueName: 'queue/1', eventBindCountThreshold: { setPercent: 80 } })
  })

  it('shows a threshold whole when only its name is given', async () => {
    const reply = await full.send(['GET', 'queues/queue%2F1?select=eventBindCountThreshold'])
    expect(reply.data).toEqual({ eventBindCountThreshold: { clearPercent: 60, setPercent: 80 } })
  })

  it('holds for the answer to a write', async () => {
    const reply = await full.send(['PATCH', 'clientUsernames/ann?select=enabled', {}])
    expect(reply.data).toEqual({ enabled: true })
  })
})

describe('a read that the broker refuses', () => {
  it.each<[string, string, number]>([
    ['an absent object is NOT_FOUND', 'queues/absent', 6],
    ['children of an absent object are NOT_FOUND', 'queues/absent/subscriptions', 6],
    ['an absent message VPN is NOT_FOUND', '/SEMP/v2/config/msgVpns/nowhere/queues', 6],
    ['where on an unknown attribute', 'queues?where=colour==red', 11],
    ['where on a password', 'clientUsernames?where=password==p', 11],
    ['where without an operator', 'queues?where=maxTtl', 11],
    ['where with < on a text', 'queues?where=queueName<b', 11],
    ['where with a text for a number', 'queues?where=maxTtl==many', 11],
    ['select of an unknown attribute', 'queues?select=queueName,colour', 11],
    ['select with a name behind an exclusion', 'queues?select=-owner,queueName', 11],
    ['select of 257 names', `queues?select=${Array(257).fill('owner').join(',')}`, 11],
    ['a count of 0', 'queues?count=0', 11],
    ['a count that is no number', 'queues?count=all', 11],
    ['a cursor that the broker never gave', 'queues?cursor=abc', 11],
    ['an unknown query parameter', 'queues?sort=queueName', 11],
    ['count on one object', 'queues/queue%2F1?count=5', 11],
    ['opaquePassword', 'clientUsernames/ann?opaquePassword=12345678', 14],
    ['an unknown collection', 'bridges', 535],
    ['an exception named by its topic alone', 'aclProfiles/default/publishTopicExceptions/a', 535],
    ['a percent sign that encodes nothing', 'queues/%zz', 535],
    ['another API', '/SEMP/v2/action/about/api', 535],
    ['a write to the monitoring API', '/SEMP/v2/monitor/msgVpns/sandbox/bridges', 535],
  ])('%s', async (_sentence, path, code) => {
    expect(await full.send(['GET', path])).toMatchObject({ httpStatus: 400, code, data: undefined })
  })
})

describe('pages', () => {
  it('hold 10 objects unless told, and never more than 100', async () => {
    const count = async (path: string) => ((await full.send(['GET', path])).data as unknown[]).length
    expect([await count('queues'), await count('queues?count=33'), await count('queues?count=500')]).toEqual([
      10, 33, 100,
    ])
  })

  it('deliver every object once, in no order of names', async () => {
    const pages = await full.pages('queues?count=100&select=queueName')
    expect(pages.map((page) => page.length)).toEqual([100, 100, 50])
    const inOrder = pages.flat().map((queue) => String(queue.queueName))
    expect(new Set(inOrder).size).toBe(QUEUE_COUNT)
    expect(inOrder).not.toEqual([...inOrder].sort())
  })

  it('can be short or empty in the middle, and still deliver every object once, the same way each time', async () => {
    const first = await uneven.pages('queues?count=20&select=queueName')
    const sizes = first.map((page) => page.length)
    expect(sizes.slice(0, -1)).toContain(0)
    expect(sizes.slice(0, -1)).toContain(10)
    expect(new Set(first.flat().map((queue) => queue.queueName)).size).toBe(QUEUE_COUNT)
    expect(first.flat()).toHaveLength(QUEUE_COUNT)
    expect(await uneven.pages('queues?count=20&select=queueName')).toEqual(first)
  })

  it('deliver what stays exactly once while other objects come and go', async () => {
    const { queues } = sandbox.broker(0).state
    queues.put('leaves')
    const first = await full.send(['GET', 'queues?count=100&select=queueName'])
    queues.remove('leaves')
    queues.put('comes')
    const rest = await full.pages(`queues?count=100&select=queueName&cursor=${first.meta.paging?.cursorQuery}`)
    const seen = [...(first.data as Record<string, unknown>[]), ...rest.flat()].map(({ queueName }) => queueName)
    const staying = seen.filter((name) => name !== 'leaves' && name !== 'comes')
    expect(staying).toHaveLength(QUEUE_COUNT)
    expect(new Set(staying).size).toBe(QUEUE_COUNT)
    queues.remove('comes')
  })

  it('can be followed by the address that the broker gives', async () => {
    const first = await full.send(['GET', 'queues?count=100&select=queueName&where=maxTtl>=100'])
    const next = new URL(first.meta.paging?.nextPageUri ?? '')
    const second = await full.send(['GET', next.pathname + next.search])
    expect([(first.data as unknown[]).length, (second.data as unknown[]).length]).toEqual([100, 50])
    expect(second.meta.paging).toBeUndefined()
  })

  it('of an empty collection are one empty list', async () => {
    const reply = await full.send(['GET', 'aclProfiles/default/publishTopicExceptions'])
    expect([reply.httpStatus, reply.data, reply.meta.paging]).toEqual([200, [], undefined])
  })
})

describe('the shape of an answer', () => {
  it('has a list of links beside a list of data', async () => {
    const { url } = sandbox.broker()
    const reply = await full.send(['GET', 'queues?where=queueName==queue/1&count=100'])
    const uri = `${url}/SEMP/v2/config/msgVpns/sandbox/queues/queue%2F1`
    expect(reply.links).toEqual([{ uri, subscriptionsUri: `${uri}/subscriptions` }])
    expect(reply.meta.request.uri).toBe(
      `${url}/SEMP/v2/config/msgVpns/sandbox/queues?where=queueName==queue/1&count=100`,
    )
  })

  it('says the platform and the version of the API', async () => {
    const reply = await full.send(['GET', '/SEMP/v2/config/about/api'])
    expect(reply.data).toEqual({ platform: 'VMR', sempVersion: '2.49' })
    const selected = await full.send(['GET', '/SEMP/v2/config/about/api?select=sempVersion'])
    expect(selected.data).toEqual({ sempVersion: '2.49' })
  })

  it('lists message VPNs', async () => {
    const reply = await full.send(['GET', '/SEMP/v2/config/msgVpns?select=msgVpnName,enabled'])
    expect(reply.data).toEqual([{ msgVpnName: 'sandbox', enabled: true }])
  })
})

describe('the monitoring API', () => {
  const MONITOR = '/SEMP/v2/monitor/msgVpns/sandbox'
  it('shows client usernames without a password', async () => {
    const reply = await full.send(['GET', `${MONITOR}/clientUsernames/ann?select=clientUsername,enabled,dynamic`])
    expect(reply.data).toEqual({ clientUsername: 'ann', enabled: true, dynamic: false })
  })

  it('counts the messages of a queue', async () => {
    const { state } = sandbox.broker()
    state.setQueued('queue/1', { messages: 3, bytes: 2048 })
    const reply = await full.send(['GET', `${MONITOR}/queues/queue%2F1?select=msgSpoolUsage`])
    expect(reply).toMatchObject({ data: { msgSpoolUsage: 2048 }, collections: { msgs: { count: 3 } } })
    const list = await full.send(['GET', `${MONITOR}/queues?where=queueName==queue/1&count=100`])
    expect(list.collections).toMatchObject([{ msgs: { count: 3 } }])
  })

  it('shows who is connected, and the configuration API does not', async () => {
    const { state } = sandbox.broker()
    const clients = [state.connect('ann'), state.connect('ann'), state.connect('nobody-knows')]
    const list = await full.send(['GET', `${MONITOR}/clients?where=clientUsername==ann&select=clientUsername`])
    expect(list.data).toEqual([{ clientUsername: 'ann' }, { clientUsername: 'ann' }])
    const name = encodeURIComponent(clients[2]?.clientName ?? '')
    const one = await full.send(['GET', `${MONITOR}/clients/${name}`])
    expect(one.data).toMatchObject({ clientUsername: 'nobody-knows', clientProfileName: 'default' })
    for (const client of clients) state.accounts.disconnect(client)
    expect(await full.send(['GET', `${MONITOR}/clients/${name}`])).toMatchObject({ code: 6 })
    expect((await full.send(['GET', `${MONITOR}/clients`])).data).toEqual([])
    expect(await full.send(['GET', 'clients'])).toMatchObject({ code: 535 })
    expect(await full.send(['GET', '/SEMP/v2/monitor/msgVpns/other/clients'])).toMatchObject({ code: 6 })
  })

  it('takes no writes', async () => {
    expect(await full.send(['DELETE', `${MONITOR}/queues/queue%2F1`])).toMatchObject({ httpStatus: 400, code: 14 })
  })
})
