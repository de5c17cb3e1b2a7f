import type { Database } from './database.ts'
import type { ImportPlan } from './import-plan.ts'
import {
  releaseAddresses,
  writeApplicationDomains,
  writeBrokers,
  writeEnvironments,
  writeEventApis,
  writeEventMeshes,
} from './import-write-catalogue.ts'
import {
  deleteProductVersions,
  markVersionsDeleted,
  NO_USER,
  recordChanger,
  writeProducts,
  writeProductVersions,
} from './import-write-products.ts'
import {
  deleteAccessRequests,
  deleteRegistrations,
  insertCredentials,
  retireCredentials,
  updateCredentials,
  writeAccessRequests,
  writeRegistrations,
} from './import-write-registrations.ts'
import { deleteBrokers, deleteById, deleteEventApis, leaveDomains } from './import-write-removals.ts'
import type { RandomSource } from './random-source.ts'
import type { Sealer } from './sealer-port.ts'

interface WriteDependencies {
  /** A transaction. */
  readonly db: Database
  readonly sealer: Sealer
  readonly random: RandomSource
}

/** `changedBy` is a user id, or stands for no user. Writes in the order in which rows need each other, then removes in the opposite one. */
export async function writeImport(
  dependencies: WriteDependencies,
  accountId: string,
  { writes, removals }: Pick<ImportPlan, 'writes' | 'removals'>,
  changedBy: string = NO_USER,
): Promise<void> {
  const { db, sealer, random } = dependencies
  const moved = writes.brokers.filter(({ addressChanges }) => addressChanges).map(({ broker }) => broker.id)
  await releaseAddresses(db, accountId, [...moved, ...removals.brokers])
  await writeEnvironments(db, accountId, writes.environments)
  await writeEventMeshes(db, accountId, writes.eventMeshes)
  await writeApplicationDomains(db, accountId, writes.applicationDomains)
  await writeBrokers(db, sealer, accountId, writes.brokers)
  await writeEventApis(db, accountId, writes.eventApis)
  await writeProducts(db, accountId, writes.products)
  await writeProductVersions(db, accountId, writes.productVersions)
  await recordChanger(db, accountId, writes, changedBy)

  await deleteRegistrations(db, accountId, removals.registrations)
  await deleteAccessRequests(db, accountId, removals.accessRequests)
  await retireCredentials(db, accountId, removals.credentials)
  await writeRegistrations(db, accountId, writes.registrations)
  await writeAccessRequests(db, random, accountId, writes.accessRequests)
  await updateCredentials(db, sealer, accountId, writes.changedCredentials)
  await insertCredentials(db, { sealer, random }, accountId, writes.newCredentials)

  await removeCatalogue(db, accountId, removals)
}

async function removeCatalogue(db: Database, accountId: string, removals: ImportPlan['removals']): Promise<void> {
  await markVersionsDeleted(db, accountId, removals.deletedVersions)
  await deleteProductVersions(db, accountId, removals.productVersions)
  await deleteById(db, 'products', accountId, removals.products)
  await deleteEventApis(db, accountId, removals.eventApis)
  await deleteBrokers(db, accountId, removals.brokers)
  await leaveDomains(db, accountId, removals.applicationDomains)
  await deleteById(db, 'application_domains', accountId, removals.applicationDomains)
  await deleteById(db, 'event_meshes', accountId, removals.eventMeshes)
  await deleteById(db, 'environments', accountId, removals.environments)
}
