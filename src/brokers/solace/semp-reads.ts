import type { z } from 'zod'
import type { KeymeshError } from '../../domain/errors.ts'
import type { SempAnswer } from './semp-answer.ts'
import type { SempSender } from './semp-client.ts'
import { unexpectedAnswer } from './semp-errors.ts'
import { pagePath, withSelect } from './semp-paths.ts'

/** Something to read; `kind` is for metrics. */
export interface SempRead<Shape> {
  readonly kind: string
  readonly path: string
  readonly select: readonly string[]
  /** A condition on what is listed, its value encoded. */
  readonly where?: string
  readonly describe: () => string
  /** Of `data`. */
  readonly schema: z.ZodType<Shape>
}

export async function readOne<Shape>(
  client: SempSender,
  read: SempRead<Shape>,
  signal: AbortSignal | undefined,
): Promise<Shape> {
  const { kind, describe } = read
  const path = withSelect(read.path, read.select)
  return parseData(client, read, await client.send({ method: 'GET', kind, path, describe, signal }))
}

/** More than any broker can hold; a cursor that never ends must not run forever. */
const MAX_PAGES = 100_000
const MAX_CURSOR_LENGTH = 8_192

/**
 * All pages, empty ones too, until the broker gives no cursor. The next page is fetched while the caller works on the
 * present one, never more than one ahead; for a caller that stops early that one page is fetched in vain.
 */
export async function* readPages<Row>(
  client: SempSender,
  read: SempRead<readonly Row[]>,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly Row[]> {
  const { kind, describe } = read
  const fetchPage = (cursor: string | null): Promise<SempAnswer> => {
    const path = pagePath(read.path, read.select, cursor, read.where)
    const answer = client.send({ method: 'GET', kind, path, describe, signal })
    // It is awaited when its turn comes, which may be after it failed, or never.
    answer.catch(() => undefined)
    return answer
  }
  const cursors = new Set<string>()
  let pending: Promise<SempAnswer> | null = fetchPage(null)
  while (pending !== null) {
    const answer: SempAnswer = await pending
    const rows = parseData(client, read, answer)
    if (answer.nextCursor !== null) checkCursor(client, read, answer.nextCursor, cursors)
    pending = answer.nextCursor === null ? null : fetchPage(answer.nextCursor)
    yield rows
  }
}

function checkCursor<Shape>(client: SempSender, read: SempRead<Shape>, cursor: string, seen: Set<string>): void {
  if (cursor.length > MAX_CURSOR_LENGTH) throw unexpected(client, read, 'its cursor is too long')
  if (seen.has(cursor)) throw unexpected(client, read, 'its cursor came before, the pages go round in a circle')
  if (seen.size >= MAX_PAGES) throw unexpected(client, read, 'its pages do not end')
  seen.add(cursor)
}

function parseData<Shape>(client: SempSender, read: SempRead<Shape>, answer: SempAnswer): Shape {
  const parsed = read.schema.safeParse(answer.data)
  if (parsed.success) return parsed.data
  const path = parsed.error.issues[0]?.path.join('.') ?? ''
  throw unexpected(client, read, `data${path === '' ? '' : `.${path}`} is missing or of another type`)
}

/** An answer that is not what SEMP promises; `what` must not quote values. */
export function unexpected<Shape>(client: SempSender, read: SempRead<Shape>, what: string): KeymeshError {
  return unexpectedAnswer({ describe: read.describe, brokerUrl: client.address.display, secrets: [] }, what)
}
