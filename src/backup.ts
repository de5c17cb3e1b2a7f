import { createReadStream } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { Context } from './context.ts'
import { InvalidInputError, KeymeshError } from './domain/errors.ts'
import type { Secret } from './domain/secret.ts'
import type { KeyRing } from './secrets/key-ring.ts'
import { passphraseProblem, sealKeyRing } from './secrets/key-ring-box.ts'
import { readKeyRingFile } from './secrets/key-ring-file.ts'
import { kidOf } from './secrets/seal.ts'
import { type BackupHeader, type BackupPart, formatBackup, parseBackup } from './store/backup-format.ts'
import type { Database } from './store/database.ts'
import { dumpTables, readSchemaHistory } from './store/dump-tables.ts'
import { createSealedRows } from './store/sealed-rows.ts'

export interface BackupSummary {
  readonly createdAt: string
  /** Of the newest migration. */
  readonly schemaVersion: number
  readonly tables: number
  readonly rows: number
  /** Keys without which its secrets cannot be opened. */
  readonly sealedWith: readonly string[]
  readonly holdsKeyRing: boolean
}

type BackupContext = Pick<Context, 'db' | 'keyRing' | 'keyRingFile' | 'now'>

/**
 * Writes the whole store into a new file that only its owner may read, from one snapshot, while the service runs. With a
 * passphrase the key ring is in it too. Throws InvalidInputError when the file exists or the passphrase is too short; a
 * file that could not be finished is removed.
 */
export async function backUp(context: BackupContext, path: string, passphrase: Secret | null): Promise<BackupSummary> {
  const problem = passphrase === null ? null : passphraseProblem(passphrase)
  if (problem !== null) throw new InvalidInputError('The passphrase', [{ message: problem }])
  const ring = context.keyRingFile === null ? context.keyRing : await readKeyRingFile(context.keyRingFile)
  const keyRing = passphrase === null ? null : await sealKeyRing(ring ?? context.keyRing, passphrase)
  const file = await create(path)
  try {
    const summary = await context.db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute(async (trx) => {
        const count = new Counter()
        const lines = formatBackup(count.watch(partsOf(trx, new Date(context.now()).toISOString(), keyRing)))
        await pipeline(lines, createGzip(), async (packed: AsyncIterable<Uint8Array>) => {
          for await (const chunk of packed) await file.writeFile(chunk)
        })
        return count.summary()
      })
    await file.sync()
    return summary
  } catch (error) {
    await rm(path, { force: true })
    throw diskProblem(path, error)
  } finally {
    await file.close()
  }
}

async function* partsOf(trx: Database, createdAt: string, keyRing: string | null): AsyncGenerator<BackupPart> {
  const [schema, sealedWith] = [await readSchemaHistory(trx), await keysOf(trx)]
  yield { kind: 'header', header: { createdAt, schema: [...schema], sealedWith: [...sealedWith], keyRing } }
  yield* dumpTables(trx)
}

const READ_BATCH = 500

/** Ids of the keys that seal the store's secrets. */
async function keysOf(db: Database): Promise<readonly string[]> {
  const rows = createSealedRows(db)
  const kids = new Set<string>()
  let afterKey: string | null = null
  for (;;) {
    const batch: Awaited<ReturnType<typeof rows.next>> = await rows.next(afterKey, READ_BATCH)
    for (const { sealed } of batch) {
      const kid = kidOf(sealed)
      if (kid !== null) kids.add(kid)
    }
    afterKey = batch.at(-1)?.key ?? afterKey
    if (batch.length < READ_BATCH) return [...kids].sort()
  }
}

/** The parts of a backup file, checked as they are read. */
export async function* readBackup(path: string): AsyncGenerator<BackupPart> {
  const source = createReadStream(path)
  const unpacked = createGunzip()
  source.on('error', (error) => unpacked.destroy(error))
  try {
    yield* parseBackup(source.pipe(unpacked))
  } catch (error) {
    throw unreadable(path, error)
  } finally {
    source.destroy()
  }
}

export interface CheckedBackup extends BackupSummary {
  readonly header: BackupHeader
}

/** Reads it to its end. Throws when it is not whole. */
export async function checkBackup(path: string): Promise<CheckedBackup> {
  const count = new Counter()
  for await (const part of count.watch(readBackup(path))) void part
  return { ...count.summary(), header: count.header() }
}

class Counter {
  #header: BackupHeader | undefined
  #tables = 0
  #rows = 0

  async *watch(parts: AsyncIterable<BackupPart>): AsyncGenerator<BackupPart> {
    for await (const part of parts) {
      if (part.kind === 'header') this.#header = part.header
      else if (part.kind === 'table') this.#tables++
      else this.#rows++
      yield part
    }
  }

  header(): BackupHeader {
    if (this.#header === undefined) throw new Error('a backup without a header')
    return this.#header
  }

  summary(): BackupSummary {
    const { createdAt, schema, sealedWith, keyRing } = this.header()
    return {
      createdAt,
      schemaVersion: schema.at(-1)?.version ?? 0,
      tables: this.#tables,
      rows: this.#rows,
      sealedWith,
      holdsKeyRing: keyRing !== null,
    }
  }
}

/** Keys of the backup that a ring lacks. */
export const missingKeys = (
  { sealedWith }: Pick<BackupHeader, 'sealedWith'>,
  ring: KeyRing | null,
): readonly string[] => sealedWith.filter((kid) => ring?.keys.has(kid) !== true)

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') {
      const message = 'exists already, and a backup is never written over another file'
      throw new InvalidInputError('The command line', [{ path, message }])
    }
    throw diskProblem(path, error)
  }
}

function diskProblem(path: string, error: unknown): unknown {
  const errno = errnoOf(error)
  if (!(error instanceof Error) || !('syscall' in error) || errno === undefined) return error
  return new KeymeshError({
    code: 'BACKUP_UNWRITABLE',
    fate: 'stop',
    message: `The backup cannot be written to ${path}: ${error.message}`,
    hint: 'Give a file in a directory that may be written and has room. The store was not changed.',
    cause: error,
  })
}

function unreadable(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error
  return new InvalidInputError('The command line', [{ path, message: `cannot be read: ${error.message}` }])
}

const errnoOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
