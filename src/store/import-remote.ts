import { InvalidInputError } from '../domain/errors.ts'
import { brokerId } from '../domain/ids.ts'
import { emptyPortalFile, type PortalBroker, type PortalFile } from '../domain/portal-file.ts'
import type { RemoteCatalogue } from '../domain/remote-catalogue.ts'
import { inCatalogueTransaction } from './catalogue-transaction.ts'
import { mayWritePass, readFollowed, recordPass, type UnmanagedBroker } from './followed-catalogues.ts'
import { rememberDocuments } from './followed-documents.ts'
import { raiseGenerations, touchedRegistrations } from './generations.ts'
import type { ImportChange } from './import-changes.ts'
import { canonicalJson } from './import-content.ts'
import { diffPortalFile } from './import-diff.ts'
import type { ImportPlan } from './import-plan.ts'
import { compareSecrets, type ImportDependencies, type ImportResult, translated } from './import-portal-file.ts'
import { guardPrune, type PruneGuard } from './import-prune.ts'
import { readCatalogueState } from './import-read.ts'
import type { CatalogueState, StoredBroker } from './import-state.ts'
import { writeImport } from './import-write.ts'
import { type MergedCatalogue, mergeRemote } from './merge-remote.ts'
import { brokerPasswordPlace, type Sealer } from './sealer-port.ts'
import { refreshStatistics } from './statistics.ts'

export interface RemoteImportOptions {
  /** Base address of the other service. */
  readonly origin: string
  /** As `beginPass` numbered it; null for a dry run, which says what would change and writes nothing. */
  readonly pass: number | null
  /** The number of deletions that a person agreed to. */
  readonly confirmedDeletions?: number | undefined
}

export interface RemoteImportResult extends ImportResult {
  readonly warnings: readonly string[]
  readonly unmanagedBrokers: readonly UnmanagedBroker[]
  /** A later pass was written meanwhile, and this one was not. */
  readonly superseded: boolean
}

/**
 * Brings the account in step with another service's catalogue by the rules of an import: in one transaction, with the
 * generations of all registrations that it touches. Brokers, event meshes and environments are declared here and stay.
 * Throws MASS_DELETE_GUARD when suspiciously much would go; nothing is written then.
 */
export async function importRemoteCatalogue(
  dependencies: ImportDependencies,
  accountId: string,
  remote: RemoteCatalogue,
  options: RemoteImportOptions,
): Promise<RemoteImportResult> {
  const { db } = dependencies
  const { pass } = options
  const task = { ...dependencies, accountId, remote, options }
  if (pass === null) return { ...shown(await planRemote(task)), raised: [], superseded: false }
  const result = await inCatalogueTransaction(db, accountId, (trx) => writeRemote({ ...task, db: trx }, pass)).catch(
    (error: unknown) => {
      throw translated(error, emptyPortalFile(`The catalogue of ${options.origin}`))
    },
  )
  if (result.changes.length >= LARGE_IMPORT) await refreshStatistics(db)
  return result
}

const LARGE_IMPORT = 200

interface RemoteTask extends ImportDependencies {
  readonly accountId: string
  readonly remote: RemoteCatalogue
  readonly options: RemoteImportOptions
}

interface RemotePlan {
  readonly plan: ImportPlan
  readonly merged: MergedCatalogue
  readonly unmanagedBrokers: readonly UnmanagedBroker[]
  readonly messagingOf: readonly string[]
}

const shown = ({ plan, merged, unmanagedBrokers }: RemotePlan) => ({
  changes: plan.changes,
  warnings: merged.warnings,
  unmanagedBrokers,
})

async function writeRemote(task: RemoteTask, pass: number): Promise<RemoteImportResult> {
  const { db, accountId, remote, options } = task
  const nothing: readonly ImportChange[] = []
  if (!(await mayWritePass(db, { accountId, pass }))) {
    return { changes: nothing, raised: [], warnings: [], unmanagedBrokers: [], superseded: true }
  }
  const planned = await planRemote(task)
  const { plan, merged, unmanagedBrokers, messagingOf } = planned
  let raised: readonly string[] = []
  if (plan.changes.length > 0) {
    await writeImport(task, accountId, plan)
    raised = await touchedRegistrations(db, accountId, plan.touched)
    await raiseGenerations(db, accountId, raised)
  }
  const named = [...remote.products, ...merged.file.products].flatMap(({ versions }) =>
    versions.flatMap(({ eventApis }) => eventApis),
  )
  await rememberDocuments(db, accountId, { read: remote.documents, named })
  const { warnings } = merged
  const { origin } = options
  await recordPass(db, { accountId, pass, origin, atMs: task.nowMs(), warnings, unmanagedBrokers, messagingOf })
  return { ...shown(planned), raised, superseded: false }
}

async function planRemote(task: RemoteTask): Promise<RemotePlan> {
  const { db, sealer, accountId, remote, options } = task
  const followed = await readFollowed(db, accountId)
  const current = await readCatalogueState(db, accountId)
  const merged = mergeRemote(current, remote, options.origin)
  const messaging = messagingFromRemote(current, remote, followed?.messagingOf ?? [])
  const file: PortalFile = { ...merged.file, brokers: await withMessaging(current, messaging, sealer) }
  const plan = diffPortalFile(current, file, {
    prune: true,
    removable: merged.removable,
    authoritative: true,
    nowMs: task.nowMs(),
    differingSecrets: await compareSecrets(sealer, current, file),
    // No broker gets another address here.
    takenAddresses: new Set(),
  })
  // Merging left nothing that could be one; what still is must not be written.
  if (plan.problems.length > 0) throw new InvalidInputError(file.file, plan.problems)
  const isNew = followed?.origin !== options.origin
  guardPrune(current, plan.changes, options.confirmedDeletions, isNew ? FIRST_PASS_GUARD : PASS_GUARD)
  return {
    plan,
    merged: { ...merged, file },
    unmanagedBrokers: unmanagedOf(current, remote),
    messagingOf: [...messaging.keys()],
  }
}

/** Versions and Event APIs come and go with what uses them; nothing is on a broker for them alone. */
const PASS_GUARD: PruneGuard = {
  guarded: ['product', 'registration', 'accessRequest', 'credential'],
  neverAll: ['product', 'registration'],
  neverNone: ['accessRequest', 'credential'],
  nothing: false,
  hint: (deletions) =>
    `Check the other service. If it is right, \`keymesh pull --dry-run\` shows them and \`keymesh pull --yes-prune ${deletions}\` removes them.`,
}

const FIRST_PASS_GUARD: PruneGuard = {
  ...PASS_GUARD,
  nothing: true,
  hint: (deletions) =>
    `The account has what the other service has not, and did not follow it until now. \`keymesh pull --dry-run\` shows it; \`keymesh pull --yes-prune ${deletions}\` removes it.`,
}

function unmanagedOf(current: CatalogueState, { products, brokers }: RemoteCatalogue): readonly UnmanagedBroker[] {
  const named = new Set(products.flatMap(({ versions }) => versions.flatMap((version) => version.brokers)))
  const names = new Map(brokers.map(({ id, name }) => [id, name]))
  return [...named]
    .filter((id) => (current.brokers.get(id)?.management ?? null) === null)
    .sort()
    .map((id) => ({ id, name: names.get(id) ?? id }))
}

/** By broker, for those without messaging settings of their own; one that the remote no longer shows keeps the last. */
function messagingFromRemote(
  current: CatalogueState,
  remote: RemoteCatalogue,
  fromRemote: readonly string[],
): ReadonlyMap<string, StoredBroker['messaging']> {
  const offered = new Map(remote.brokers.map(({ id, messaging }) => [id, messaging]))
  return new Map(
    [...current.brokers.values()].flatMap(({ id, messaging }) => {
      if (messaging !== null && !fromRemote.includes(id)) return []
      const found = offered.get(id) ?? messaging
      return found === null ? [] : [[id, found] as const]
    }),
  )
}

/** Only brokers that change, whole. */
async function withMessaging(
  { accountId, brokers }: CatalogueState,
  messaging: ReadonlyMap<string, StoredBroker['messaging']>,
  sealer: Sealer,
): Promise<readonly PortalBroker[]> {
  const changed = [...brokers.values()].filter(
    ({ id, messaging: stored }) => messaging.has(id) && canonicalJson(stored) !== canonicalJson(messaging.get(id)),
  )
  return await Promise.all(
    changed.map(async ({ id, name, kind, eventMeshId, management, policy, sealedPassword, passwordVersion }) => ({
      id: brokerId(id),
      name,
      kind,
      eventMeshId,
      management,
      managementPassword:
        sealedPassword === null
          ? null
          : await sealer.open(sealedPassword, brokerPasswordPlace(accountId, id, passwordVersion)),
      messaging: messaging.get(id) ?? null,
      policy,
    })),
  )
}
