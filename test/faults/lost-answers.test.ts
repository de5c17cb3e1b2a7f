import { describe, expect, it } from 'vitest'
import type { FaultRule } from '../../src/sandbox/faults.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

const COLLECTIONS = [
  'clientProfiles',
  'aclProfiles',
  'publishTopicExceptions',
  'subscribeTopicExceptions',
  'clientUsernames',
  'queues',
  'subscriptions',
] as const

/** What becomes of the first write into each collection, and whether the broker does it all the same. */
const LOST: readonly (Pick<FaultRule, 'fault' | 'applied'> & { readonly what: string })[] = [
  { what: 'a gateway says 503 to it and passes it on', fault: 'http-503', applied: true },
  { what: 'a gateway says 529 to it and passes it on', fault: 'http-529', applied: true },
  { what: 'the broker says 503 and does nothing', fault: 'http-503', applied: false },
  { what: 'the connection breaks before it is done', fault: 'reset', applied: false },
  { what: 'the connection breaks after it was done', fault: 'reset', applied: true },
  { what: 'half of the answer comes', fault: 'half-body', applied: true },
  { what: 'the answer is no JSON', fault: 'junk-json', applied: true },
]

const CLIENTS = [client('app-0'), client('app-1')]

async function sweepUntilDone(mesh: TestMesh): Promise<void> {
  for (let sweep = 0; sweep < 4 * COLLECTIONS.length; sweep += 1) {
    const result = await mesh.sweep(0, { trigger: 'operator' }).catch(() => null)
    if (result !== null && result.failed + result.waiting + result.busy === 0) return
    expect((await mesh.pairs()).filter(({ state }) => state === 'conflict')).toEqual([])
  }
  expect.fail(`after ${4 * COLLECTIONS.length} sweeps: ${JSON.stringify(await mesh.pairs())}`)
}

describe.concurrent('when the first write of each kind is lost', () => {
  it.each(LOST)('since $what: nothing of ours becomes foreign, and all is done', async ({ fault, applied }) => {
    await using mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, CLIENTS) })
    const broker = mesh.broker()
    const first = (method: string): readonly FaultRule[] =>
      COLLECTIONS.map((collection) => ({
        fault,
        ...(applied !== undefined && { applied }),
        times: 1,
        match: { method, path: new RegExp(`/${collection}(/[^/]*)?$`) },
      }))
    broker.setFaults(first('POST'))
    await sweepUntilDone(mesh)
    const inPlace = () => {
      for (const { id } of CLIENTS) {
        expect(broker.state.checkLogin(keyOf(id), givenSecretOf(id))).toBe('accepted')
        expect(broker.state.aclProfiles.members(id, 'publishTopicExceptions')).toEqual(['smf,orders/*/cancel'])
        expect(broker.state.queues.members(objectsOf(broker, id).queue, 'subscriptions')).toHaveLength(3)
      }
    }
    inPlace()

    const { queue } = objectsOf(broker, 'app-0')
    broker.state.queues.change(queue, { maxMsgSpoolUsage: 1 })
    broker.state.queues.addMember(queue, 'subscriptions', 'payroll/>')
    broker.state.aclProfiles.change('app-0', { publishTopicDefaultAction: 'allow' })
    broker.state.aclProfiles.addMember('app-0', 'publishTopicExceptions', 'smf,payroll/>')
    broker.state.clientUsernames.change(keyOf('app-1'), { enabled: false })
    broker.setFaults([...first('PATCH'), ...first('DELETE')])
    await sweepUntilDone(mesh)
    inPlace()
    expect(broker.state.queues.get(queue)?.maxMsgSpoolUsage).toBe(500)
    expect(broker.state.aclProfiles.get('app-0')?.publishTopicDefaultAction).toBe('disallow')
    expect((await mesh.drift()).filter(({ kind }) => kind === 'conflict')).toEqual([])
    expect(await mesh.drift({ openOnly: true })).toEqual([])
  })
})
