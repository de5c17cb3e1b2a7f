import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { laggingPairs } from '../../src/store/pairs.ts'
import { type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, objectsOf, ordersPortal } from './reconcile-fixtures.ts'

const APPS = Array.from({ length: 12 }, (_, index) => `app-${String(index).padStart(2, '0')}`)
/** Two listings of an ACL profile and one of a queue for each. */
const LISTINGS = APPS.length * 3

async function settledMesh(options: MeshOptions = {}): Promise<TestMesh> {
  const mesh = await withMesh({
    portal: (brokers) =>
      ordersPortal(
        brokers,
        APPS.map((id) => client(id)),
      ),
    ...options,
  })
  await mesh.sweep()
  return mesh
}

const listings = (mesh: TestMesh): number =>
  (['publishTopicExceptions', 'subscribeTopicExceptions', 'subscriptions'] as const).reduce(
    (sum, kind) => sum + mesh.broker().requests.count('list', kind),
    0,
  )

async function suspected(mesh: TestMesh): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select registration_id as id from pairs where suspected_at is not null order by 1`.execute(mesh.context.db)
  return rows.map(({ id }) => id)
}

describe('listings of members', () => {
  it('take turns within the bound, and every object is still compared in each sweep', async () => {
    await using mesh = await settledMesh({ env: { KEYMESH_SWEEP_LISTINGS: '9' } })
    const before = listings(mesh)
    await mesh.sweep()
    const read = listings(mesh) - before
    expect(read).toBeGreaterThan(0)
    expect(read).toBeLessThan(LISTINGS)
    // Attributes of any object are seen at once …
    for (const app of APPS) mesh.broker().state.aclProfiles.change(app, { publishTopicDefaultAction: 'allow' })
    expect(await mesh.sweep()).toMatchObject({ changed: APPS.length })
    // … and members when their turn comes, which is at the latest in the sweep after all have had theirs.
    for (const app of APPS) mesh.broker().state.aclProfiles.addMember(app, 'publishTopicExceptions', 'smf,payroll/>')
    let healed = 0
    for (let sweep = 0; sweep <= Math.ceil(LISTINGS / 9); sweep += 1) healed += (await mesh.sweep()).changed
    expect(healed).toBe(APPS.length)
    for (const app of APPS) {
      expect(mesh.broker().state.aclProfiles.members(app, 'publishTopicExceptions')).not.toContain('smf,payroll/>')
    }
  })

  it('are all read when a person asks', async () => {
    await using mesh = await settledMesh({ env: { KEYMESH_SWEEP_LISTINGS: '1' } })
    for (const app of APPS) mesh.broker().state.aclProfiles.addMember(app, 'publishTopicExceptions', 'smf,payroll/>')
    expect(await mesh.plans()).toHaveLength(APPS.length)
    expect(await mesh.sweep(0, { trigger: 'operator' })).toMatchObject({ changed: APPS.length })
  })
})

describe('a sweep that is cut off', () => {
  /** Ends a sweep when it has read everything and found its suspects: as if the process died there. */
  async function cutOff(mesh: TestMesh): Promise<void> {
    const controller = new AbortController()
    const sweep = mesh.sweep(0, {
      signal: controller.signal,
      onProgress: ({ phase, done }: { phase: string; done: number }) => {
        if (phase === 'reconciling' && done === 1) controller.abort(new Error('the process died'))
      },
    } as object)
    await expect(sweep).rejects.toThrow()
  }

  it('leaves its suspects on record, and the next one looks at them although the broker hides them', async () => {
    await using mesh = await settledMesh({ env: { KEYMESH_CONCURRENCY: '2' } })
    for (const app of APPS)
      mesh.broker().state.queues.change(objectsOf(mesh.broker(), app).queue, { egressEnabled: false })
    await cutOff(mesh)
    const left = await suspected(mesh)
    expect(left.length).toBeGreaterThan(0)
    await mesh.sweep()
    expect(await suspected(mesh)).toEqual([])
    for (const app of APPS) {
      expect(mesh.broker().state.queues.get(objectsOf(mesh.broker(), app).queue)?.egressEnabled).toBe(true)
    }
  })

  it('is finished by the poll when no sweep comes', async () => {
    await using mesh = await settledMesh({ env: { KEYMESH_CONCURRENCY: '2' } })
    for (const app of APPS) mesh.broker().state.clientUsernames.change(`key-of-${app}`, { enabled: false })
    await cutOff(mesh)
    const left = await suspected(mesh)
    expect(await laggingPairs(mesh.context.db, 100)).toEqual([])
    await sql`update pairs set suspected_at = suspected_at - interval '11 minutes'`.execute(mesh.context.db)
    expect((await laggingPairs(mesh.context.db, 100)).map(({ registrationId }) => registrationId).sort()).toEqual(left)
  })

  it('does not read again what it had read to the end', async () => {
    await using mesh = await settledMesh()
    const { db } = mesh.context
    await sql`update broker_status set sweep_checkpoint = jsonb_build_object('beganAtMs', ${Date.now()}::float8,
      'kinds', '["queue", "aclProfile", "clientProfile"]'::jsonb)`.execute(db)
    const full = await mesh.sweep(0, { trigger: 'operator' })
    await sql`update broker_status set sweep_checkpoint = jsonb_build_object('beganAtMs', ${Date.now()}::float8,
      'kinds', '["queue", "aclProfile", "clientProfile"]'::jsonb)`.execute(db)
    mesh.broker().state.clientUsernames.change('key-of-app-03', { enabled: false })
    const resumed = await mesh.sweep()
    expect(resumed.objectsRead).toBeLessThan(full.objectsRead)
    expect(resumed).toMatchObject({ changed: 1 })
    // The next one begins anew.
    expect((await mesh.sweep()).objectsRead).toBe(full.objectsRead)
  })

  it('begins anew when what it had read is old', async () => {
    await using mesh = await settledMesh()
    const full = await mesh.sweep()
    await sql`update broker_status set sweep_checkpoint = jsonb_build_object('beganAtMs', ${Date.now() - 2 * 3_600_000}::float8,
      'kinds', '["queue", "aclProfile", "clientProfile"]'::jsonb)`.execute(mesh.context.db)
    expect((await mesh.sweep()).objectsRead).toBe(full.objectsRead)
  })
})
