import { describe, expect, it } from 'vitest'
import { codeOf } from '../../src/domain/errors.ts'
import { createJobServices } from '../../src/services.ts'
import { deleteCredential } from '../../src/store/credentials.ts'
import { pause } from '../../src/store/pause.ts'
import { deleteRegistration } from '../../src/store/registrations.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { suppliedCredential } from './import-fixtures.ts'
import { client, keyOf, ordersPortal } from './reconcile-fixtures.ts'

const LEAKED = 'leaked-consumer-key'
const noCheck = (): void => undefined

/** `app` and `other` are in effect; one credential of `app` was just deleted, and no job says so. */
async function withLeak(): Promise<TestMesh> {
  const credentials = [
    suppliedCredential('main', keyOf('app'), 'the-secret-of-app-4711'),
    suppliedCredential('leaked', LEAKED, 'the-secret-of-somebody-4711'),
  ]
  const mesh = await withMesh({
    portal: (brokers) => ordersPortal(brokers, [client('app', { credentials }), client('other')]),
  })
  await mesh.sweep()
  const { db, accountId } = mesh.context
  await deleteCredential(db, { accountId, registrationId: 'app', consumerKey: LEAKED }, noCheck)
  return mesh
}

const isOn = (mesh: TestMesh, key = LEAKED): unknown => mesh.broker().state.clientUsernames.get(key)?.enabled

describe('a revocation whose job was lost', () => {
  it('is found by the poll, until the username is off', async () => {
    await using mesh = await withLeak()
    const services = createJobServices(mesh.context)
    expect(await services.revokedPairs(10)).toEqual([mesh.pair('app')])
    const { signal } = new AbortController()
    expect(await services.reconcilePair(mesh.pair('app'), 'revocation', signal)).toBe('done')
    expect([isOn(mesh), isOn(mesh, keyOf('app'))]).toEqual([false, true])
    expect(await services.revokedPairs(10)).toEqual([])
    expect(await services.laggingPairs(10)).toEqual([])
  })

  it('is not found for registrations that leave the broker: many of those may be an accident', async () => {
    await using mesh = await withLeak()
    const { db, accountId } = mesh.context
    for (const registrationId of ['app', 'other']) await deleteRegistration(db, { accountId, registrationId }, noCheck)
    expect(await createJobServices(mesh.context).revokedPairs(10)).toEqual([])
  })
})

describe('a revocation', () => {
  it('does nothing while its registration is paused', async () => {
    await using mesh = await withLeak()
    const { db, engine, accountId } = mesh.context
    await pause(db, { accountId, registrationId: 'app' }, 'admin')
    expect(await createJobServices(mesh.context).revokedPairs(10)).toEqual([])
    const run = engine.reconcilePair(mesh.pair('app'), { trigger: 'revocation' })
    expect(await run.then(() => 'done', codeOf)).toBe('PAUSED')
    expect(isOn(mesh)).toBe(true)
  })

  it('goes through while a worker that does not answer holds the pair', async () => {
    await using mesh = await withLeak()
    const { reconcileStore, engine } = mesh.context
    expect(await reconcileStore.acquire(mesh.pair('app'), 'silent-worker', 60_000)).not.toBeNull()
    expect(await engine.reconcilePair(mesh.pair('app'), { trigger: 'revocation' })).toEqual({ status: 'busy' })
    expect([isOn(mesh), isOn(mesh, keyOf('app'))]).toEqual([false, true])
  })

  it('goes through where the topics of the registration cannot be expressed', async () => {
    await using mesh = await withLeak()
    await mesh.database.pool.query(`update registrations set filters = '{"region": ["a/b"]}' where id = 'app'`)
    const run = mesh.context.engine.reconcilePair(mesh.pair('app'), { trigger: 'revocation' })
    expect(await run.then(() => 'done', codeOf)).toBe('CANNOT_EXPRESS')
    expect([isOn(mesh), isOn(mesh, keyOf('app'))]).toEqual([false, true])
    const { rows } = await mesh.database.pool.query(`select steps, error_code from runs where trigger = 'revocation'`)
    expect(rows).toEqual([{ steps: 1, error_code: 'CANNOT_EXPRESS' }])
  })
})
