import { sql } from 'kysely'
import { InvalidInputError, type Problem } from '../domain/errors.ts'
import type { AccountId } from '../domain/ids.ts'
import { emptyPortalFile, type PortalFile } from '../domain/portal-file.ts'
import type { Secret } from '../domain/secret.ts'
import { inCatalogueTransaction } from './catalogue-transaction.ts'
import type { Database } from './database.ts'
import { followsRemote, keepOwnMessaging, readFollowed } from './followed-catalogues.ts'
import { refuseRemoteSections } from './followed-import.ts'
import { raiseGenerations, touchedRegistrations } from './generations.ts'
import { diffPortalFile } from './import-diff.ts'
import { compareSecrets, type ImportDependencies, translated } from './import-portal-file.ts'
import { readCatalogueState, readTakenAddresses } from './import-read.ts'
import type { CatalogueState } from './import-state.ts'
import { writeImport } from './import-write.ts'
import { referenceProblems } from './portal-references.ts'
import { type RemovalTarget, removalOf } from './portal-removal.ts'
import { brokerPasswordPlace } from './sealer-port.ts'

/** What is stored, inside the transaction of the change, which no other change of the catalogue crosses. */
export interface StoredCatalogue {
  readonly state: CatalogueState
  readonly db: Database
  /** The stored password of a broker that has one. */
  readonly brokerPassword: (brokerId: string) => Promise<Secret | null>
}

export interface PortalEdit {
  readonly accountId: AccountId
  /** A user id: who is named as the last to change a product or a version of it. */
  readonly changedBy: string
  /** Products whose access requests matter for the change; nobody else changes these products meanwhile. */
  readonly requestsFor?: readonly string[]
  /** At most one object of any kind, whole, or one to remove. Throws to refuse the change. */
  readonly edit: (
    stored: StoredCatalogue,
  ) => Promise<{ readonly put: Partial<PortalFile> } | { readonly remove: RemovalTarget }>
}

/**
 * Changes one object of the catalogue by the rules of an import, in one transaction with the generations of all
 * registrations that it touches, and answers those. Throws InvalidInputError with every problem, or what `edit` throws;
 * nothing is written then.
 */
export async function editPortal(dependencies: ImportDependencies, edit: PortalEdit): Promise<readonly string[]> {
  const { accountId } = edit
  return await inCatalogueTransaction(dependencies.db, accountId, (db) =>
    applyEdit({ ...dependencies, db }, edit),
  ).catch((error: unknown) => {
    throw translated(error, NOTHING)
  })
}

const NOTHING = emptyPortalFile('The request')

async function applyEdit(dependencies: ImportDependencies, edit: PortalEdit): Promise<readonly string[]> {
  const { db, sealer } = dependencies
  const { accountId } = edit
  const { requestsFor = [] } = edit
  // Integrations write the attributes of a product without regard to imports: theirs wait for this row.
  await sql`
    select id from products where account_id = ${accountId} and id = any(${requestsFor}) order by id for update`.execute(
    db,
  )
  const state = await readCatalogueState(db, accountId, { requestsFor })
  const brokerPassword = async (id: string): Promise<Secret | null> => {
    const { sealedPassword = null, passwordVersion = 0 } = state.brokers.get(id) ?? {}
    return sealedPassword === null
      ? null
      : await sealer.open(sealedPassword, brokerPasswordPlace(accountId, id, passwordVersion))
  }
  const change = await edit.edit({ state, db, brokerPassword })
  const part = 'put' in change ? { ...NOTHING, ...change.put } : NOTHING
  const followed = await readFollowed(db, accountId)
  if (followed !== null) {
    refuseRemoteSections(followed, part)
    if ('remove' in change && !DECLARED_HERE.has(change.remove.kind)) throw followsRemote(followed)
  }
  const { changes, problems, writes, removals, touched } = diffPortalFile(state, part, {
    prune: false,
    wholeAttributes: true,
    ...('remove' in change ? { removed: removalOf(state, change.remove) } : {}),
    nowMs: dependencies.nowMs(),
    differingSecrets: await compareSecrets(sealer, state, part),
    takenAddresses: await readTakenAddresses(db, accountId, part),
  })
  const found = [...referenceProblems(state, part), ...problems.map(ofTheObject)]
  if (found.length > 0) throw new InvalidInputError('The request', found)
  if (changes.length === 0) return []
  await writeImport(dependencies, accountId, { writes, removals }, edit.changedBy)
  const withMessaging = changes.filter(({ attributes }) => attributes.some(({ name }) => name === 'messaging'))
  await keepOwnMessaging(
    db,
    accountId,
    withMessaging.map(({ id }) => id),
  )
  const raised = await touchedRegistrations(db, accountId, touched)
  await raiseGenerations(db, accountId, raised)
  return raised
}

/** Even of an account that follows another service's catalogue. */
const DECLARED_HERE: ReadonlySet<RemovalTarget['kind']> = new Set(['environment', 'eventMesh', 'broker'])

/** The rules of an import name a place in a file; the request is the object itself. */
const ofTheObject = ({ message, path = '' }: Problem): Problem => ({
  message,
  path: path.replace(/^[A-Za-z]+(\[\d+\])?\.?/, ''),
})
