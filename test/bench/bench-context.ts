import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { sql } from 'kysely'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import type { Disposer } from '../../src/disposer.ts'
import type { PortalFile } from '../../src/domain/portal-file.ts'
import { allDone } from '../../src/reconcile/concurrently.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'

export type Environment = Readonly<Record<string, string>>

/** A directory that is gone afterwards. */
export async function benchDirectory(opened: Disposer): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-bench-'))
  // For root, whose database runs as another user: out of its reach, it would be kept elsewhere and stay.
  await chmod(directory, 0o711)
  opened.defer(() => rm(directory, { recursive: true, force: true }))
  return directory
}

export async function openBenchContext(env: Environment, opened: Disposer): Promise<Context> {
  const config = toConfig({ env: { KEYMESH_LOG_LEVEL: 'error', ...env }, pid: process.pid, hostname: 'bench' })
  const context = await openContext(config)
  opened.defer(() => context[Symbol.asyncDispose]())
  return context
}

export async function importCatalogue({ db, sealer, now, accountId }: Context, file: PortalFile): Promise<void> {
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, file)
}

/** Everything on its broker, unmeasured. Throws when something is not after that. */
export async function settle({ engine, db, accountId }: Context, file: PortalFile): Promise<void> {
  await allDone(file.brokers.map(({ id }) => engine.sweep({ accountId, brokerId: id }, { trigger: 'operator' })))
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from pairs
    where state <> 'in-sync' or reached_generation <> generation`.execute(db)
  const count = rows[0]?.count ?? Number.NaN
  if (count !== 0) throw new Error(`${count} registrations are not in sync after a sweep`)
}

/** As before the first run. */
export async function forgetBrokers({ db }: Pick<Context, 'db'>): Promise<void> {
  await sql`truncate ledger, drift, runs`.execute(db)
  await sql`update pairs set reached_generation = 0, state = 'lagging', due_at = null`.execute(db)
}
