import { timingSafeEqual } from 'node:crypto'
import { InvalidInputError, KeymeshError, type Problem } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { Secret } from '../domain/secret.ts'
import { databaseField, inCatalogueTransaction } from './catalogue-transaction.ts'
import type { Database } from './database.ts'
import { keepOwnMessaging, readFollowed } from './followed-catalogues.ts'
import {
  declaredHere,
  ownMessagingOf,
  refuseRemoteSections,
  removedBrokersInUse,
  withRemoteMessaging,
} from './followed-import.ts'
import { raiseGenerations, touchedRegistrations } from './generations.ts'
import type { ImportChange } from './import-changes.ts'
import { type DifferingSecrets, diffPortalFile } from './import-diff.ts'
import type { ImportPlan } from './import-plan.ts'
import { guardPrune } from './import-prune.ts'
import { readCatalogueState, readTakenAddresses } from './import-read.ts'
import type { CatalogueState } from './import-state.ts'
import { writeImport } from './import-write.ts'
import type { RandomSource } from './random-source.ts'
import { brokerPasswordPlace, credentialPlace, type Sealer } from './sealer-port.ts'
import { refreshStatistics } from './statistics.ts'

export interface ImportDependencies {
  readonly db: Database
  readonly sealer: Sealer
  readonly random: RandomSource
  readonly nowMs: () => number
}

export interface ImportOptions {
  /** Removes what the file does not hold, unless that is suspiciously much. */
  readonly prune?: boolean
  /** The number of deletions that a person agreed to. */
  readonly confirmedDeletions?: number
  /** Says what would change and writes nothing. */
  readonly dryRun?: boolean
}

export interface ImportResult {
  readonly changes: readonly ImportChange[]
  /** Registrations whose generation was raised; in a dry run none. */
  readonly raised: readonly string[]
}

/**
 * Brings the account in step with the file, in one transaction; two imports into one account wait for each other.
 * Throws InvalidInputError with every problem, or MASS_DELETE_GUARD; nothing is written then.
 */
export async function importPortalFile(
  dependencies: ImportDependencies,
  accountId: string,
  file: PortalFile,
  options: ImportOptions = {},
): Promise<ImportResult> {
  const { db } = dependencies
  if (options.dryRun === true) {
    const { changes } = await planImport({ ...dependencies, accountId, file, options })
    return { changes, raised: [] }
  }
  const result = await inCatalogueTransaction(db, accountId, (trx) =>
    applyImport({ ...dependencies, db: trx, accountId, file, options }),
  ).catch((error: unknown) => {
    throw translated(error, file)
  })
  if (result.changes.length >= LARGE_IMPORT) await refreshStatistics(db)
  return result
}

const LARGE_IMPORT = 200

interface ImportTask extends ImportDependencies {
  readonly accountId: string
  readonly file: PortalFile
  readonly options: ImportOptions
}

async function applyImport(task: ImportTask): Promise<ImportResult> {
  const { db, accountId } = task
  const { changes, writes, removals, touched } = await planImport(task)
  await keepOwnMessaging(db, accountId, ownMessagingOf(task.file))
  if (changes.length === 0) return { changes, raised: [] }
  await writeImport(task, accountId, { writes, removals })
  const raised = await touchedRegistrations(db, accountId, touched)
  await raiseGenerations(db, accountId, raised)
  return { changes, raised }
}

async function planImport(task: ImportTask): Promise<ImportPlan> {
  const { db, accountId, options } = task
  const followed = await readFollowed(db, accountId)
  if (followed !== null) refuseRemoteSections(followed, task.file)
  const current = await readCatalogueState(db, accountId)
  const file = followed === null ? task.file : withRemoteMessaging(followed, current, task.file)
  const removable = followed === null ? declaredByFiles(current) : declaredHere(current)
  const plan = diffPortalFile(current, file, {
    prune: options.prune === true,
    removable,
    nowMs: task.nowMs(),
    differingSecrets: await compareSecrets(task.sealer, current, file),
    takenAddresses: await readTakenAddresses(db, accountId, file),
  })
  const problems = [
    ...plan.problems,
    ...(followed === null ? [] : removedBrokersInUse(followed, current, plan.removals)),
  ]
  if (problems.length > 0) throw new InvalidInputError(file.file, problems.map(placedIn(file)))
  guardPrune(removable, plan.changes, options.confirmedDeletions)
  return plan
}

/** Registrations that the API made belong to whoever made them. */
const declaredByFiles = (current: CatalogueState): CatalogueState => ({
  ...current,
  registrations: new Map([...current.registrations].filter(([, { isDeclared }]) => isDeclared)),
})

const placedIn =
  ({ file, lineOf }: PortalFile) =>
  (problem: Problem): Problem => ({
    ...problem,
    file,
    ...(problem.path === undefined || lineOf === undefined ? {} : { line: lineOf(problem.path) }),
  })

/** Opens what the file also gives, and tells only which differ. */
export async function compareSecrets(
  sealer: Sealer,
  current: CatalogueState,
  file: PortalFile,
): Promise<DifferingSecrets> {
  const { accountId } = current
  const brokers = new Set<string>()
  const credentials = new Set<string>()
  for (const { id, managementPassword } of file.brokers) {
    const stored = current.brokers.get(id)
    if (managementPassword === null || stored === undefined || stored.sealedPassword === null) continue
    const place = brokerPasswordPlace(accountId, id, stored.passwordVersion)
    if (!isSameSecret(managementPassword, await sealer.open(stored.sealedPassword, place))) brokers.add(id)
  }
  for (const registration of file.registrations) {
    const known = current.registrations.get(registration.id)?.credentials
    for (const { name, consumerKey, consumerSecret } of registration.credentials) {
      const stored = known?.get(name)
      if (consumerSecret === null || stored === undefined || stored.consumerKey !== consumerKey) continue
      const place = credentialPlace(accountId, stored.id, stored.secretVersion)
      if (!isSameSecret(consumerSecret, await sealer.open(stored.sealedSecret, place))) credentials.add(stored.id)
    }
  }
  return { brokers, credentials }
}

function isSameSecret(left: Secret, right: Secret): boolean {
  const [a, b] = [Buffer.from(left.reveal()), Buffer.from(right.reveal())]
  return a.length === b.length && timingSafeEqual(a, b)
}

const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'

/** What another account or the reconciler wrote between the check and the write. */
export function translated(error: unknown, file: PortalFile): unknown {
  const constraint = databaseField(error, 'constraint')
  if (databaseCode(error) === UNIQUE_VIOLATION && constraint === 'brokers_management_address_key') {
    const message = 'a message VPN of the file is in use already and cannot be managed from here'
    return new InvalidInputError(file.file, [{ file: file.file, path: 'brokers', message }])
  }
  if (databaseCode(error) === FOREIGN_KEY_VIOLATION && databaseField(error, 'table') === 'ledger') {
    return new KeymeshError({
      code: 'BROKER_IN_USE',
      fate: 'retry',
      message: 'A broker got new objects while it was being removed; nothing was written.',
      hint: 'Import again.',
      cause: error,
    })
  }
  return error
}

const databaseCode = (error: unknown): string | undefined => databaseField(error, 'code')
