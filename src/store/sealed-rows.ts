import { sql } from 'kysely'
import { z } from 'zod'
import type { SealPlace } from '../domain/seal-place.ts'
import type { Database } from './database.ts'
import { brokerPasswordPlace, credentialPlace, notificationEndpointPlace, webhookPlace } from './sealer-port.ts'

/** A sealed secret where it is stored. */
export interface SealedRow {
  /** Orders the rows and stays the same. */
  readonly key: string
  readonly place: SealPlace
  readonly sealed: string
}

export interface SealedRows {
  /** Rows in the order of their keys, those after `afterKey` only; fewer than `limit` at the end. */
  next(afterKey: string | null, limit: number): Promise<readonly SealedRow[]>
  /** Writes only while the row still holds `expected`; false when a newer secret came in between. */
  replace(row: SealedRow, expected: string, resealed: string): Promise<boolean>
}

const TABLES = ['brokers', 'credentials', 'webhooks', 'notification_endpoints'] as const
type SealedTable = (typeof TABLES)[number]

const keySchema = z.tuple([z.enum(TABLES), z.string(), z.string()])

/** Every secret of every account, for key rotation. */
export function createSealedRows(db: Database): SealedRows {
  return {
    async next(afterKey, limit) {
      const [afterTable, ...after] = afterKey === null ? [] : keySchema.parse(JSON.parse(afterKey))
      const rows: SealedRow[] = []
      for (const table of TABLES.slice(afterTable === undefined ? 0 : TABLES.indexOf(afterTable))) {
        if (rows.length >= limit) break
        const start = table === afterTable ? after : []
        rows.push(...(await readRows(db, table, start, limit - rows.length)))
      }
      return rows
    },
    async replace({ key, place }, expected, resealed) {
      const [table] = keySchema.parse(JSON.parse(key))
      const { column, versionColumn } = COLUMNS[table]
      const { numAffectedRows } = await sql`
        update ${sql.table(table)} set ${sql.ref(column)} = ${resealed}
        where ${sql.ref(column)} = ${expected} and ${sql.ref(versionColumn)} = ${place.version}
          and account_id = ${place.accountId} and id = ${place.rowId}`.execute(db)
      return numAffectedRows === 1n
    },
  }
}

/** Where the sealed secret of a table stands, with its version. */
const COLUMNS = {
  brokers: {
    column: 'management_password',
    versionColumn: 'management_password_version',
    placeOf: brokerPasswordPlace,
  },
  credentials: { column: 'secret', versionColumn: 'secret_version', placeOf: credentialPlace },
  webhooks: { column: 'secrets', versionColumn: 'secrets_version', placeOf: webhookPlace },
  notification_endpoints: {
    column: 'secrets',
    versionColumn: 'secrets_version',
    placeOf: notificationEndpointPlace,
  },
} as const satisfies Readonly<Record<SealedTable, object>>

interface FoundRow {
  readonly accountId: string
  readonly id: string
  readonly sealed: string
  readonly version: number
}

async function readRows(
  db: Database,
  table: SealedTable,
  [afterAccount = '', afterId = '']: readonly string[],
  limit: number,
): Promise<readonly SealedRow[]> {
  const { column, versionColumn, placeOf } = COLUMNS[table]
  const { rows } = await sql<FoundRow>`
    select account_id as "accountId", id, ${sql.ref(column)} as sealed, ${sql.ref(versionColumn)} as version
    from ${sql.table(table)}
    where (account_id, id) > (${afterAccount}, ${afterId}) and ${sql.ref(column)} is not null
    order by account_id, id limit ${limit}`.execute(db)
  return rows.map((row) => ({
    key: JSON.stringify([table, row.accountId, row.id]),
    place: placeOf(row.accountId, row.id, row.version),
    sealed: row.sealed,
  }))
}
