import { describe, expect, it } from 'vitest'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import { changePolicy } from '../../src/store/policies.ts'
import { readStatus } from '../../src/store/status-view.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, objectsOf, ordersPortal } from './reconcile-fixtures.ts'

const QUEUE = `keymesh-${'a'.repeat(26)}`

const settledMesh = async (): Promise<TestMesh> => {
  const mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, [client('app-a'), client('app-b')]) })
  await mesh.sweep()
  return mesh
}

/** What a store that is lost leaves behind. */
function leaveBehind({ state }: SandboxBroker, name: string): void {
  state.aclProfiles.put(name)
  state.clientUsernames.put(`key-of-${name}`, { aclProfileName: name, clientProfileName: 'keymesh-receive' })
}

const lookalikes = async ({ context }: TestMesh) => (await readStatus(context.db, context.accountId))[0]?.lookalikes

describe('objects that look like ours and are not in the ledger', () => {
  it('are none on a broker of ours alone, whatever others have there', async () => {
    await using mesh = await settledMesh()
    const { state } = mesh.broker()
    state.queues.put('orders')
    state.aclProfiles.put('theirs')
    state.clientUsernames.put('their-client', { aclProfileName: 'theirs' })
    await mesh.sweep()
    expect(await mesh.context.engine.orphans(mesh.key())).toEqual([])
    expect(await lookalikes(mesh)).toBeNull()
  })

  it('are found by the first sweep, and no sweep touches them', async () => {
    await using mesh = await withMesh({ portal: () => ({}) })
    leaveBehind(mesh.broker(), 'lost')
    mesh.broker().state.queues.put(QUEUE)
    await mesh.sweep()
    await mesh.sweep()
    expect(mesh.writes()).toBe(0)
    expect(await lookalikes(mesh)).toMatchObject({ count: 2, growing: false })
    expect(await mesh.context.engine.orphans(mesh.key())).toEqual([
      { kind: 'aclProfile', name: 'lost' },
      { kind: 'clientUsername', name: 'key-of-lost' },
      { kind: 'queue', name: QUEUE },
    ])
  })

  it('that become more between two sweeps are another Keymesh at work', async () => {
    await using mesh = await settledMesh()
    leaveBehind(mesh.broker(), 'first')
    await mesh.sweep()
    leaveBehind(mesh.broker(), 'second')
    await mesh.sweep()
    expect(await lookalikes(mesh)).toMatchObject({ count: 2, growing: true })
    await mesh.sweep()
    expect(await lookalikes(mesh)).toMatchObject({ count: 2, growing: false })
  })

  it('are deleted by a person alone, and only those that were named', async () => {
    await using mesh = await settledMesh()
    leaveBehind(mesh.broker(), 'lost')
    mesh.broker().state.queues.put(QUEUE)
    const { engine } = mesh.context
    const ours = objectsOf(mesh.broker(), 'app-a')
    expect(await engine.deleteOrphans(mesh.key(), ({ name }) => name === ours.queue)).toEqual([])
    expect(await engine.deleteOrphans(mesh.key(), ({ kind }) => kind === 'queue')).toEqual([
      { kind: 'queue', name: QUEUE },
    ])
    expect(mesh.broker().state.queues.has(ours.queue)).toBe(true)
    await engine.deleteOrphans(mesh.key(), () => true)
    expect(mesh.broker().state.clientUsernames.has('key-of-lost')).toBe(false)
    expect(mesh.broker().state.aclProfiles.has('lost')).toBe(false)
    expect(await engine.orphans(mesh.key())).toEqual([])
    expect(await mesh.plans()).toEqual([])
  })

  it.each(['observe-only', 'create-only'] as const)('stay where the policy of the broker is %s', async (mode) => {
    await using mesh = await settledMesh()
    leaveBehind(mesh.broker(), 'lost')
    const { db, engine } = mesh.context
    const check = (): void => undefined
    await changePolicy(db, { ...mesh.key(), change: (policy) => ({ ...policy, mode }), check })
    await expect(engine.deleteOrphans(mesh.key(), () => true)).rejects.toMatchObject({ code: 'DELETION_NOT_ALLOWED' })
    expect(mesh.broker().state.aclProfiles.has('lost')).toBe(true)
  })

  it('do not take an ACL profile with them that somebody else uses', async () => {
    await using mesh = await settledMesh()
    leaveBehind(mesh.broker(), 'shared')
    mesh.broker().state.clientUsernames.put('their-client', { aclProfileName: 'shared' })
    expect(await mesh.context.engine.orphans(mesh.key())).toEqual([{ kind: 'clientUsername', name: 'key-of-shared' }])
  })
})
