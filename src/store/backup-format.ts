import { createHash } from 'node:crypto'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'

// A backup is gzipped lines of JSON: a header, then per table its name and columns and its rows, then an end with the digest
// of all lines before it. Values are the text that PostgreSQL writes for them, whatever its version: nothing in it depends
// on how a server stores its data.

const FORMAT = 1
const MAX_LINE_CHARACTERS = 512 * 1024 * 1024

const headerSchema = z.object({
  keymesh: z.literal('backup'),
  format: z.number(),
  createdAt: z.iso.datetime(),
  /** Migrations of the database, oldest first. */
  schema: z.array(z.object({ version: z.number().int(), name: z.string() })).min(1),
  /** Ids of the keys that seal its secrets. */
  sealedWith: z.array(z.string()),
  /** The key ring, sealed with a passphrase; null: it is not in here. */
  keyRing: z.string().nullable(),
})
const tableSchema = z.strictObject({ table: z.string(), columns: z.array(z.string()).min(1) })
const rowSchema = z.array(z.string().nullable())
const endSchema = z.strictObject({ end: z.literal(true), rows: z.number().int(), sha256: z.string() })

export type BackupHeader = Omit<z.infer<typeof headerSchema>, 'keymesh' | 'format'>
export type BackupTable = z.infer<typeof tableSchema>

export type BackupPart =
  | { readonly kind: 'header'; readonly header: BackupHeader }
  | { readonly kind: 'table'; readonly table: BackupTable }
  /** JSON of an array of strings and nulls, one for each column of the table before it. */
  | { readonly kind: 'row'; readonly json: string }

/** The lines of a backup, each with its line break. */
export async function* formatBackup(parts: AsyncIterable<BackupPart>): AsyncGenerator<string> {
  const digest = createHash('sha256')
  let rows = 0
  for await (const part of parts) {
    if (part.kind === 'row') rows++
    const line = `${lineOf(part)}\n`
    digest.update(line)
    yield line
  }
  yield `${JSON.stringify({ end: true, rows, sha256: digest.digest('hex') })}\n`
}

function lineOf(part: BackupPart): string {
  switch (part.kind) {
    case 'header':
      return JSON.stringify({ keymesh: 'backup', format: FORMAT, ...part.header })
    case 'table':
      return JSON.stringify(part.table)
    case 'row':
      return part.json
    default:
      return part satisfies never
  }
}

/**
 * Reads what `formatBackup` wrote, from unpacked bytes. Throws BACKUP_FOREIGN, BACKUP_TOO_NEW or BACKUP_DAMAGED; that it is
 * whole is known only after the last part.
 */
export async function* parseBackup(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<BackupPart> {
  const digest = createHash('sha256')
  let number = 0
  let rows = 0
  let columns = 0
  let ended = false
  for await (const line of linesOf(bytes)) {
    number++
    if (ended) throw damaged(`line ${number} stands after its end`)
    const value = parseJson(line)
    if (number === 1) {
      const header = parseHeader(value)
      digest.update(`${line}\n`)
      yield { kind: 'header', header }
      continue
    }
    const row = rowSchema.safeParse(value)
    if (row.success) {
      if (row.data.length !== columns) throw damaged(`line ${number} does not fit its table`)
      rows++
      digest.update(`${line}\n`)
      yield { kind: 'row', json: line }
      continue
    }
    const end = endSchema.safeParse(value)
    if (end.success) {
      if (end.data.sha256 !== digest.digest('hex') || end.data.rows !== rows) throw damaged('its digest is another one')
      ended = true
      continue
    }
    const table = tableSchema.safeParse(value)
    if (!table.success) throw damaged(`line ${number} cannot be read`)
    columns = table.data.columns.length
    digest.update(`${line}\n`)
    yield { kind: 'table', table: table.data }
  }
  if (number === 0) throw foreign()
  if (!ended) throw damaged('it is cut short')
}

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let rest = ''
  try {
    for await (const chunk of bytes) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_LINE_CHARACTERS) throw foreign()
      yield* lines
    }
  } catch (error) {
    if (error instanceof KeymeshError) throw error
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // Not gzip from its first byte on.
    if (code === 'Z_DATA_ERROR' && /incorrect header check/.test(String(error))) throw foreign()
    if (code.startsWith('Z_') || error instanceof TypeError) throw damaged('it is cut short or was changed')
    throw error
  }
  if (rest !== '') yield rest
}

function parseHeader(value: unknown): BackupHeader {
  const begun = z.object({ keymesh: z.literal('backup'), format: z.number() }).safeParse(value)
  if (!begun.success) throw foreign()
  if (begun.data.format > FORMAT) throw tooNew(`is of format ${begun.data.format}`)
  const header = headerSchema.safeParse(value)
  if (!header.success) throw damaged('its first line cannot be read')
  const { createdAt, schema, sealedWith, keyRing } = header.data
  return { createdAt, schema, sealedWith, keyRing }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** `what`: as the rest of a sentence about the backup. */
export function tooNew(what: string): KeymeshError {
  return new KeymeshError({
    code: 'BACKUP_TOO_NEW',
    fate: 'stop',
    message: `The backup ${what}, which this program does not know.`,
    hint: 'Restore it with the release that made it or a newer one. Nothing was written.',
  })
}

function foreign(): KeymeshError {
  return new KeymeshError({
    code: 'BACKUP_FOREIGN',
    fate: 'stop',
    message: 'The file is not a backup of Keymesh.',
    hint: 'Give a file that `keymesh backup` wrote. Nothing was written.',
  })
}

function damaged(how: string): KeymeshError {
  return new KeymeshError({
    code: 'BACKUP_DAMAGED',
    fate: 'stop',
    message: `The backup is damaged: ${how}.`,
    hint: 'Fetch it again from where it is kept, or use another backup. Nothing was written.',
  })
}
