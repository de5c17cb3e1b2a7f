import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import pg from 'pg'
import { checkBackup, missingKeys, readBackup } from './backup.ts'
import type { Config } from './config.ts'
import { createLogger } from './context.ts'
import { KeymeshError } from './domain/errors.ts'
import { Secret } from './domain/secret.ts'
import { type KeyRing, parseKeyRing } from './secrets/key-ring.ts'
import { openKeyRing } from './secrets/key-ring-box.ts'
import { keyRingPath, readKeyRingFile, writeKeyRingFile } from './secrets/key-ring-file.ts'
import { createSealer } from './secrets/seal.ts'
import type { BackupHeader } from './store/backup-format.ts'
import type { Database } from './store/database.ts'
import { startEmbeddedPostgres } from './store/embedded-postgres.ts'
import { assertKnownSchema, loadBackup } from './store/load-tables.ts'
import { migrations } from './store/migrations.ts'
import { createSealedRows } from './store/sealed-rows.ts'

export interface RestoreReport {
  readonly createdAt: string
  /** The program's own, which the store has now. */
  readonly schemaVersion: number
  readonly tables: number
  readonly rows: number
  /** Secrets that were opened to see that the key ring is the right one. */
  readonly secrets: number
  /** Where the key ring of the backup was put; null: there was one already. */
  readonly keyRingFile: string | null
}

/**
 * Restores a backup into the empty database that the settings name. The file is read to its end first; nothing is written
 * when it is not whole, when the database is not empty, when the key ring lacks a key, or when a secret does not open.
 */
export async function restore(config: Config, path: string, passphrase: Secret | null): Promise<RestoreReport> {
  const { header } = await checkBackup(path)
  assertKnownSchema(header, migrations)
  const keys = await keysFor(config, header, passphrase)
  const log = createLogger(config)
  const embedded =
    config.databaseUrl === null ? await startEmbeddedPostgres({ dataDirectory: config.dataDirectory, log }) : null
  try {
    const connectionString = config.databaseUrl ?? embedded?.connectionString
    return await load(path, new pg.Pool({ connectionString, max: 1 }), keys)
  } finally {
    await embedded?.stop()
  }
}

interface Keys {
  readonly ring: KeyRing
  /** Where the ring is put before the store is kept; null: it is there already. */
  readonly writeTo: string | null
}

async function load(path: string, pool: pg.Pool, { ring, writeTo }: Keys): Promise<RestoreReport> {
  let written = false
  pool.on('error', () => undefined)
  try {
    const client = await pool.connect()
    client.on('error', () => undefined)
    try {
      let secrets = 0
      const { header, tables, rows } = await loadBackup(client, readBackup(path), {
        migrations,
        check: async (db) => {
          secrets = await openAll(db, ring)
          // Before the store is kept: a store without its keys is worth nothing.
          if (writeTo !== null) await writeKeyRingFile(writeTo, ring)
          written = writeTo !== null
        },
      })
      const schemaVersion = migrations.at(-1)?.version ?? 0
      return { createdAt: header.createdAt, schemaVersion, tables, rows, secrets, keyRingFile: writeTo }
    } finally {
      client.release()
    }
  } catch (error) {
    if (written && writeTo !== null) await rm(writeTo, { force: true })
    throw error
  } finally {
    await pool.end()
  }
}

/** The ring of the settings, or of the data directory, or of the backup, in this order. */
async function keysFor(config: Config, header: BackupHeader, passphrase: Secret | null): Promise<Keys> {
  const file = keyRingPath(config.dataDirectory)
  if (config.keys !== null) return { ring: complete(parseKeyRing(config.keys, 'KEYMESH_KEYS'), header), writeTo: null }
  const found = existsSync(file) ? await readKeyRingFile(file) : null
  if (found !== null) return { ring: complete(found, header), writeTo: null }
  return { ring: complete(await keyRingOf(header, passphrase), header), writeTo: file }
}

/** The key ring in a backup as KEYMESH_KEYS takes it, the current key first. */
export async function shownKeyRing(path: string, passphrase: Secret | null): Promise<Secret> {
  const { header } = await checkBackup(path)
  const { current, keys } = await keyRingOf(header, passphrase)
  const entries = [...keys].sort(([one], [other]) => Number(other === current) - Number(one === current))
  return new Secret(entries.map(([kid, key]) => `${kid}:${key.export().toString('base64url')}`).join(','))
}

/** Throws KEY_RING_NOT_IN_BACKUP, PASSPHRASE_MISSING, PASSPHRASE_WRONG. */
async function keyRingOf(header: BackupHeader, passphrase: Secret | null): Promise<KeyRing> {
  if (header.keyRing === null) {
    throw new KeymeshError({
      code: 'KEY_RING_NOT_IN_BACKUP',
      fate: 'stop',
      message: `The backup does not hold the key ring, and its secrets need ${keyNames(header.sealedWith)}.`,
      hint: 'Put the keys.json that was kept with it into the data directory, or give that ring in KEYMESH_KEYS. Nothing was written.',
    })
  }
  if (passphrase === null) {
    throw new KeymeshError({
      code: 'PASSPHRASE_MISSING',
      fate: 'stop',
      message: 'The key ring in the backup is sealed with a passphrase.',
      hint: 'Name the environment variable that holds it with --passphrase-env. Nothing was written.',
    })
  }
  return await openKeyRing(header.keyRing, passphrase)
}

function complete(ring: KeyRing, header: BackupHeader): KeyRing {
  const missing = missingKeys(header, ring)
  if (missing.length === 0) return ring
  throw new KeymeshError({
    code: 'KEY_MISSING',
    fate: 'stop',
    message: `Secrets in the backup are sealed with ${keyNames(missing)}, which the key ring does not have.`,
    hint: 'Give the ring that belongs to the backup. Nothing was written.',
  })
}

const keyNames = (kids: readonly string[]): string =>
  kids.length === 1 ? `the key ${kids[0]}` : `the keys ${kids.join(', ')}`

const READ_BATCH = 500

/** Proves that the ring is the right one; answers how many secrets there are. */
async function openAll(db: Database, ring: KeyRing): Promise<number> {
  const sealer = createSealer(ring)
  const rows = createSealedRows(db)
  let count = 0
  let afterKey: string | null = null
  for (;;) {
    const batch: Awaited<ReturnType<typeof rows.next>> = await rows.next(afterKey, READ_BATCH)
    for (const { sealed, place } of batch) await sealer.open(sealed, place)
    count += batch.length
    afterKey = batch.at(-1)?.key ?? afterKey
    if (batch.length < READ_BATCH) return count
  }
}
