import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { type Config, toConfig } from '../config.ts'
import { type Context, openContext } from '../context.ts'
import { Disposer } from '../disposer.ts'
import { KeymeshError } from '../domain/errors.ts'
import { registrationId } from '../domain/ids.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { Enqueuer } from '../queue/enqueue.ts'
import { isEmpty } from '../reconcile/render.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { type OpenQueue, openQueue, startScheduler, startWorkerRole } from '../roles.ts'
import { ALL_LOGIN_PORTS } from '../sandbox/login/login-listeners.ts'
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts'
import { listManagedBrokers } from '../store/broker-settings.ts'
import { readDrift } from '../store/drift-view.ts'
import { importPortalFile } from '../store/import-portal-file.ts'
import { cryptoRandom } from '../store/random-source.ts'
import { type BrokerStatusView, readStatus } from '../store/status-view.ts'
import { addForeignClient, type Breakage, breakBrokers } from './breakages.ts'
import { demoCatalogue, withNewcomer } from './demo-catalogue.ts'
import { countLogins, credentialsOnBrokers, type LoginCount, type LoginCounts } from './login-counts.ts'

export interface DemoSummary {
  readonly brokers: number
  readonly registrations: number
  readonly credentials: number
  /** Broker objects that Keymesh created. */
  readonly objects: number
  /** Registrations on brokers that are as they should be, of `pairs`. */
  readonly inSync: number
  readonly pairs: number
  readonly drift: { readonly injected: number; readonly detected: number; readonly repaired: number }
  readonly conflicts: number
  readonly logins: LoginCounts
  /** Logins that each protocol should take: credentials on brokers, over all brokers. */
  readonly credentialsOnBrokers: number
  /** Writes that a second look would still send: none. */
  readonly pendingWrites: number
  readonly foreignUntouched: boolean
  readonly durationMs: number
}

/** What the demo tells while it runs. */
export interface DemoStory {
  step(text: string): void
  done(text: string): void
  detail(text: string): void
}

export interface Demo {
  readonly context: Context
  readonly queue: OpenQueue
  readonly sandbox: Sandbox
  readonly summary: DemoSummary
  readonly statuses: readonly BrokerStatusView[]
  dispose(): Promise<void>
}

const PATIENCE_MS = 60_000

/**
 * The main job on one machine: an embedded database, three simulated brokers, the sample catalogue, the real queue and
 * worker; then brokers are broken by hand and heal. What it made is gone after `dispose`.
 */
export async function runDemo(story: DemoStory, signal: AbortSignal): Promise<Demo> {
  const opened = new Disposer()
  try {
    const startedAtMs = performance.now()
    const { context, sandbox } = await start(story, opened)
    const queue = await openQueue(context)
    const { enqueue } = queue
    opened.defer(() => queue.backend.close())
    const file = await demoCatalogue(sandbox)

    story.step('Importing the sample catalogue')
    const { changes, raised } = await importFile(context, file)
    story.done(`${changes.length} objects imported, ${raised.length} registrations to bring to their brokers`)

    story.step('The worker reconciles')
    opened.defer(await startWorkerRole(context, queue))
    for (const id of raised) await enqueue.registration(context.accountId, registrationId(id))
    await until('all registrations are on their brokers', signal, async () => settled(await statuses(context)))
    story.done(`${total(await statuses(context))} registrations on brokers are in sync, passwords included`)

    story.step('Breaking the brokers by hand')
    const brokers = file.brokers.map(({ id }) => id)
    const breakages = breakBrokers(
      sandbox,
      brokers,
      (await credentialsOnBrokers(context))
        .filter(({ pair }) => pair.brokerId === brokers.at(-1))
        .map(({ username }) => username),
    )
    for (const { broker, what } of breakages) story.detail(`${broker}: ${what}`)
    const foreign = addForeignClient(sandbox.broker(0))
    story.detail(`${file.brokers[0]?.id ?? ''}: a client of somebody else takes a name that a newcomer wants`)
    const second = await importFile(context, withNewcomer(file))
    story.done(`${breakages.length} changes and one foreign client`)

    story.step('Sweeping every broker')
    await sweepAll(context, enqueue, signal, [...second.raised])
    await until('the drift is healed', signal, async () => breakages.every((breakage) => breakage.repaired()))
    const detected = await readDrift(context.db, { accountId: context.accountId, limit: 100 })
    const driftRows = detected.filter(({ kind }) => kind !== 'conflict')
    story.done(`${driftRows.length} differences found, ${breakages.filter(isRepaired).length} healed`)
    for (const row of driftRows)
      story.detail(`${row.brokerId}: ${row.objectKind} ${row.objectName}: ${row.kind}, ${row.action}`)

    story.step('Logging in with every credential over all eleven protocols, and with wrong passwords')
    const logins = await countLogins(context, { sandbox, brokers }, signal)
    story.done(`${sumOf(logins, 'accepted')} logins accepted, ${sumOf(logins, 'refusedWrong')} wrong passwords refused`)

    const final = await statuses(context)
    const summary: DemoSummary = {
      ...(await counts(context)),
      brokers: sandbox.brokers.length,
      inSync: sum(final, ({ registrations }) => registrations.inSync),
      pairs: total(final),
      drift: {
        injected: breakages.length,
        detected: driftRows.length,
        repaired: driftRows.filter(({ repairedAtMs }) => repairedAtMs !== null).length,
      },
      conflicts: sum(final, ({ registrations }) => registrations.conflict),
      logins,
      credentialsOnBrokers: (await credentialsOnBrokers(context)).length,
      pendingWrites: await pendingWrites(context),
      foreignUntouched: foreign.untouched(),
      durationMs: Math.round(performance.now() - startedAtMs),
    }
    return { context, queue, sandbox, summary, statuses: final, dispose: () => opened.dispose() }
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

const sumOf = (counts: LoginCounts, what: keyof LoginCount): number =>
  Object.values(counts).reduce((sum, count) => sum + count[what], 0)

const isRepaired = (breakage: Breakage): boolean => breakage.repaired()

/** True when the demo ended as it should: all in sync but the one conflict, which was left alone. */
export function endedWell(summary: DemoSummary): boolean {
  const { drift, conflicts, inSync, pairs, pendingWrites, foreignUntouched, credentialsOnBrokers: expected } = summary
  return (
    drift.injected > 3 &&
    Object.values(summary.logins).every(
      ({ accepted, refusedWrong }) => accepted === expected && refusedWrong === expected,
    ) &&
    drift.detected === drift.injected &&
    drift.repaired === drift.injected &&
    conflicts === 1 &&
    inSync === pairs - conflicts &&
    pendingWrites === 0 &&
    foreignUntouched
  )
}

async function start(story: DemoStory, opened: Disposer) {
  story.step('Starting an embedded database and three simulated brokers')
  const dataDirectory = await mkdtemp(join(tmpdir(), 'keymesh-demo-'))
  opened.defer(() => rm(dataDirectory, { recursive: true, force: true }))
  // For root, whose database runs as another user: out of its reach, it would be kept elsewhere and stay.
  await chmod(dataDirectory, 0o711)
  const sandbox = await startSandbox({ brokers: 3, common: { msgVpnName: 'rail', logins: ALL_LOGIN_PORTS } })
  opened.defer(() => sandbox.close())
  const context = await openContext(demoConfig(dataDirectory))
  opened.defer(() => context[Symbol.asyncDispose]())
  story.done(`database in ${dataDirectory}, brokers on ${sandbox.brokers.map(({ url }) => url).join(', ')}`)
  return { context, sandbox }
}

/** Its own settings, whatever the environment says: the demo never touches a real database or broker. */
function demoConfig(dataDirectory: string): Config {
  const env = {
    KEYMESH_DATA_DIR: dataDirectory,
    KEYMESH_LOG_LEVEL: 'error',
    KEYMESH_SWEEP_CRON: '*/30 * * * * *',
    KEYMESH_POLL_CRON: '*/5 * * * * *',
    // Each sweep logs in with every credential.
    KEYMESH_LOGIN_EVERY: '1s',
  }
  return toConfig({ env, pid: process.pid, hostname: 'demo' })
}

const importFile = (context: Context, file: PortalFile) =>
  importPortalFile(
    { db: context.db, sealer: context.sealer, random: cryptoRandom, nowMs: context.now },
    context.accountId,
    file,
  )

const statuses = ({ db, accountId }: Context) => readStatus(db, accountId)

const settled = (brokers: readonly BrokerStatusView[]): boolean =>
  brokers.length > 0 && brokers.every(({ registrations }) => registrations.inSync === registrations.total)

const sum = (brokers: readonly BrokerStatusView[], count: (broker: BrokerStatusView) => number): number =>
  brokers.reduce((all, broker) => all + count(broker), 0)

const total = (brokers: readonly BrokerStatusView[]): number => sum(brokers, ({ registrations }) => registrations.total)

async function sweepAll(
  context: Context,
  enqueue: Enqueuer,
  signal: AbortSignal,
  newcomers: readonly string[],
): Promise<void> {
  const brokers: readonly BrokerKey[] = await listManagedBrokers(context.db, context.accountId)
  const before = new Map(
    (await statuses(context)).map(({ brokerId, lastSweep }) => [brokerId, lastSweep?.finishedAtMs]),
  )
  for (const id of newcomers) await enqueue.registration(context.accountId, registrationId(id))
  for (const broker of brokers) await enqueue.sweep(broker, 'sweep')
  await until('every broker is swept', signal, async () =>
    (await statuses(context)).every(
      ({ brokerId, lastSweep, registrations }) =>
        lastSweep?.outcome === 'done' && lastSweep.finishedAtMs !== before.get(brokerId) && registrations.lagging === 0,
    ),
  )
}

async function pendingWrites(context: Context): Promise<number> {
  let writes = 0
  for (const broker of await listManagedBrokers(context.db, context.accountId)) {
    for await (const plan of context.engine.planBroker(broker)) if (!isEmpty(plan)) writes += plan.steps.length
  }
  return writes
}

async function counts({ db, accountId }: Context) {
  const { rows } = await sql<{ registrations: number; credentials: number; objects: number }>`
    select
      (select count(*) from registrations where account_id = ${accountId} and deleted_at is null) as registrations,
      (select count(*) from credentials where account_id = ${accountId} and retired_at is null) as credentials,
      (select count(*) from ledger where account_id = ${accountId} and applied is not null) as objects`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('the database did not count')
  return row
}

async function until(what: string, signal: AbortSignal, holds: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    signal.throwIfAborted()
    if (performance.now() > giveUpAtMs) {
      throw new KeymeshError({
        code: 'DEMO_STUCK',
        fate: 'stop',
        message: `The demo waited ${PATIENCE_MS / 1000} seconds in vain until ${what}.`,
        hint: 'Run it again; if it happens again, please report it.',
      })
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Goes on healing by itself until the signal: for a person who wants to break things. */
export async function keepRunning(demo: Demo, signal: AbortSignal): Promise<void> {
  const stop = await startScheduler(demo.context, demo.queue)
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await stop()
}
