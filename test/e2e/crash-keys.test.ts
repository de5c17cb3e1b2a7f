import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { codeOf } from '../../src/domain/errors.ts'
import { keysInUse, type ResealReport, removeOldKey, rotateKeys } from '../../src/key-rotation.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { addKey, formatKeyRing, newKey, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'
import { keyRingPath, readKeyRingFile } from '../../src/secrets/key-ring-file.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { emptyPortalFile, portalBroker, storedSecrets, withMesh } from '../helpers/mesh.ts'
import { type StatementPoint, startPostgresTap } from '../helpers/postgres-tap.ts'
import { Service, until } from '../helpers/service.ts'
import { suppliedCredential } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'
import { farCron } from './crash-world.ts'

const APPS = Array.from({ length: 6 }, (_, index) => `app-${index}`)
const GIVEN = new Map(APPS.map((id) => [keyOf(id), givenSecretOf(id)]))

const NEXT_SECRET = 'the-next-secret-Vd83'

const opened = new Disposer()
afterEach(() => opened.dispose())

async function directoryFor(what: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), `keymesh-${what}-`))
  opened.defer(() => rm(directory, { recursive: true, force: true }))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(directory, 0o711)
  return directory
}

/** How many secrets each key seals. */
const sealedBy = async (context: Context) =>
  Object.fromEntries((await keysInUse(context)).map(({ kid, secrets }) => [kid, secrets]))

/** Whether a statement that writes a credential waits for somebody else's lock. */
async function waitsForCredential({ db }: Context): Promise<boolean> {
  const { rows } = await sql<{ waits: boolean }>`
    select exists (select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%update%credentials%')
      as waits`.execute(db)
  return rows[0]?.waits === true
}

async function stoppedAt(command: Service, isReached: () => boolean | Promise<boolean>): Promise<void> {
  await until('the command is stopped', async () => {
    if (!command.isRunning) throw new Error(`the command ended by itself:\n${command.printed}`)
    return (await isReached()) ? true : null
  })
}

/** The database sees only after a moment that a killed command is gone, and with it the command's lock. */
const unlessBusy = (work: () => Promise<ResealReport>): Promise<ResealReport> =>
  until('the lock of the killed command is free', () =>
    work().catch((error: unknown) => {
      if (codeOf(error) !== 'KEYS_BUSY') throw error
      return null
    }),
  )

describe('`keymesh keys rotate`, killed while it reseals', { timeout: 120_000 }, () => {
  it('with the ring of the environment, leaves secrets that all open, and goes on when it is run again', async () => {
    const mesh = await withMesh({
      portal: (brokers) =>
        ordersPortal(
          brokers,
          APPS.map((id) => client(id)),
        ),
    })
    opened.defer(() => mesh[Symbol.asyncDispose]())
    const { context } = mesh
    const tap = await startPostgresTap(mesh.database.connectionString)
    opened.defer(() => tap[Symbol.asyncDispose]())
    const dataDirectory = await directoryFor('keys')
    const next = newKey()
    const ring = promoteKey(addKey(context.keyRing, next.kid, next.key), next.kid)
    const env = { ...mesh.env, KEYMESH_KEYS: formatKeyRing(ring).reveal() }
    const rotating = await openContext(toConfig({ env, pid: process.pid, hostname: 'rotating' }))
    opened.defer(() => rotating[Symbol.asyncDispose]())

    const [third, fifth] = (await rotating.db.selectFrom('credentials').select('id').orderBy('id').execute())
      .map(({ id }) => id)
      .filter((_, index) => index === 2 || index === 4)
    const update = { statement: /update "?credentials"? set/ }
    const points: readonly [StatementPoint, number][] = [
      // The management password of the broker and two credentials are done.
      [{ ...update, about: [String(third)], moment: 'before' }, 3],
      [{ ...update, about: [String(fifth)], moment: 'after' }, 6],
    ]
    for (const [point, resealed] of points) {
      const hold = tap.hold(point)
      const command = ['keys', 'rotate']
      const options = { dataDirectory, command, env: { ...env, DATABASE_URL: tap.connectionString } }
      await using rotation = Service.begin(options)
      await stoppedAt(rotation, hold.isReached)
      await rotation.kill()
      expect(await sealedBy(rotating)).toMatchObject({ [next.kid]: resealed })
      expect(await storedSecrets(rotating)).toEqual(GIVEN)
    }
    const report = await unlessBusy(() => rotateKeys(rotating, {}))
    expect(report).toMatchObject({ kid: next.kid, complete: true, resealed: 1 })

    const alone = removeKey(ring, context.keyRing.current)
    const without = toConfig({
      env: { ...env, KEYMESH_KEYS: formatKeyRing(alone).reveal() },
      pid: process.pid,
      hostname: 'without the old key',
    })
    const later = await openContext(without)
    opened.defer(() => later[Symbol.asyncDispose]())
    expect(await storedSecrets(later)).toEqual(GIVEN)
    await later.engine.sweep(mesh.key(), { trigger: 'sweep' })
    for (const [key, secret] of GIVEN) expect(mesh.broker().state.checkLogin(key, secret)).toBe('accepted')
  })

  it('with a ring file, leaves a service that opens every secret, and finishes with the key that was made', async () => {
    const sandbox = await startSandbox({ brokers: 1 })
    opened.defer(() => sandbox.close())
    const dataDirectory = await directoryFor('ring')
    const env = { KEYMESH_DATA_DIR: dataDirectory, KEYMESH_LOG_LEVEL: 'silent', KEYMESH_LOGINS: 'false' }
    const service = await Service.start({
      dataDirectory,
      env: {
        KEYMESH_ROLES: 'worker,scheduler',
        KEYMESH_POLL_CRON: '* * * * * *',
        KEYMESH_SWEEP_CRON: farCron(),
        KEYMESH_LOGINS: 'false',
      },
    })
    opened.defer(async () => {
      await service.stop()
      await service.databaseGone()
    })
    const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'command' }))
    opened.defer(() => context[Symbol.asyncDispose]())
    const ringFile = keyRingPath(dataDirectory)
    const importSecret = (secretOf: (id: string) => string) => {
      const brokers = sandbox.brokers.map(portalBroker)
      const clients = APPS.map((id) =>
        client(id, { credentials: [suppliedCredential('main', keyOf(id), secretOf(id))] }),
      )
      const file = { ...emptyPortalFile(brokers), ...ordersPortal(brokers, clients) }
      const { db, sealer, accountId } = context
      return importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, file)
    }
    await importSecret(givenSecretOf)
    const oldKid = String((await readKeyRingFile(ringFile))?.current)
    const credentials = await context.db
      .selectFrom('credentials')
      .select(['id', 'consumer_key'])
      .orderBy('id')
      .execute()
    const [first, , third] = credentials

    {
      await using rotation = Service.begin({
        dataDirectory,
        command: ['keys', 'rotate'],
        env: { KEYMESH_LOGINS: 'false' },
      })
      await context.db.transaction().execute(async (trx) => {
        // This one cannot be written while that lasts; the ones after it stay as they are.
        await trx.selectFrom('credentials').select('id').where('id', '=', String(third?.id)).forUpdate().execute()
        await stoppedAt(rotation, () => waitsForCredential(context))
        await rotation.kill()
      })
      // The database ends the statement that it was sent, whoever sent it.
      await until('the third credential is written', async () =>
        (await sealedBy(context))[oldKid] === 4 ? null : true,
      )
    }
    const ring = await readKeyRingFile(ringFile)
    const kid = String(ring?.current)
    expect(kid).not.toBe(oldKid)
    expect([...(ring?.keys.keys() ?? [])].toSorted()).toEqual([kid, oldKid].toSorted())
    expect(await storedSecrets(context)).toEqual(GIVEN)
    expect(await sealedBy(context)).toMatchObject({ [oldKid]: 3 })
    // The service, which began with the old ring, goes on with the new one.
    const changed = String(first?.consumer_key)
    await importSecret((id) => (keyOf(id) === changed ? NEXT_SECRET : givenSecretOf(id)))
    const { state } = sandbox.broker()
    await until('the next secret is on the broker', () =>
      state.checkLogin(changed, NEXT_SECRET) === 'accepted' ? true : null,
    )

    const report = await unlessBusy(() => rotateKeys(context, {}))
    expect(report).toMatchObject({ kid, oldKids: [oldKid], complete: true })
    await removeOldKey(context, oldKid)
    expect(await storedSecrets(context)).toEqual(new Map([...GIVEN, [changed, NEXT_SECRET]]))
    expect([...((await readKeyRingFile(ringFile))?.keys.keys() ?? [])]).toEqual([kid])
  })
})
