import { z } from 'zod'
import { InvalidInputError } from '../../domain/errors.ts'
import { CONSOLE } from './access.ts'

// What stands in the addresses of pages about records and the catalogue. A form sends what was left open as an empty text.

const open = (text: string): string | undefined => (text === '' ? undefined : text)

/** An id, looked up, not made. */
export const named = z
  .string()
  .trim()
  .max(256)
  .optional()
  .transform((text) => open(text ?? ''))

/** One of these, or nothing. */
export const oneOfThese = <const Value extends string>(values: readonly [Value, ...Value[]]) =>
  z
    .enum(['', ...values])
    .optional()
    .transform((text): Value | undefined => (text === '' ? undefined : (text as Value | undefined)))

const MAX_MS = 8.64e15
export const epochMs = z.coerce.number().int().min(0).max(MAX_MS).optional()

/** Where a list goes on: a text that `cursorOf` made. */
export const cursorText = z
  .string()
  .max(600)
  .optional()
  .transform((text) => open(text ?? ''))

export const cursorOf = (atMs: number, id: string | number): string => `${atMs}_${id}`

/** Null on the first page. Throws InvalidInputError for what `cursorOf` did not make. */
export function parseCursor(text: string | undefined): { readonly atMs: number; readonly id: string } | null {
  if (text === undefined) return null
  const [, atMs, id] = /^(\d{1,16})_(.{1,256})$/su.exec(text) ?? []
  if (atMs === undefined || id === undefined || Number(atMs) > MAX_MS) throw badCursor()
  return { atMs: Number(atMs), id }
}

/** The same with a number for an id. */
export function parseNumericCursor(text: string | undefined): { readonly atMs: number; readonly id: number } | null {
  const cursor = parseCursor(text)
  if (cursor === null) return null
  const id = Number(cursor.id)
  if (!/^\d+$/.test(cursor.id) || !Number.isSafeInteger(id)) throw badCursor()
  return { atMs: cursor.atMs, id }
}

const badCursor = (): InvalidInputError =>
  new InvalidInputError('The address', [
    { path: 'after', message: 'is no place in this list; begin at its first page' },
  ])

/** Where a form was: a page of the console and nothing else. */
export const back = z
  .string()
  .regex(/^\/console(?:[/?][^\\\s]*)?$/)
  .max(2000)
  .catch(CONSOLE)

/** The rows of a page of which one more was read, and whether there are more. */
export function pageOf<Row>(
  rows: readonly Row[],
  size: number,
): { readonly shown: readonly Row[]; readonly last: Row | null } {
  const shown = rows.slice(0, size)
  return { shown, last: rows.length > size ? (shown.at(-1) ?? null) : null }
}
