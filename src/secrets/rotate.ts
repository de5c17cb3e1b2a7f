import { codeOf } from '../domain/errors.ts'
import type { SealPlace } from '../domain/seal-place.ts'
import type { Sealer } from './seal.ts'

/** One column of secrets, as the store offers it to rotation. */
export interface SealedRows {
  /** Rows in the order of their keys, those after `afterKey` only; fewer than `limit` at the end. */
  next(afterKey: string | null, limit: number): Promise<readonly SealedRow[]>
  /** Writes only while the row still holds `expected` (compare and set); false when a newer secret came in between. */
  replace(row: SealedRow, expected: string, resealed: string): Promise<boolean>
}

export interface SealedRow {
  /** Orders the rows and stays the same. */
  readonly key: string
  readonly place: SealPlace
  readonly sealed: string
}

export interface ResealOutcome {
  readonly resealed: number
  /** Rows that could not be opened, left as they are; the first hundred. */
  readonly unreadable: readonly { readonly place: SealPlace; readonly code: string }[]
  readonly unreadableCount: number
  /** True when a last look over all rows found none under another key: only then may the old keys go. */
  readonly complete: boolean
}

export interface ResealOptions {
  readonly batchSize?: number
  /** Ends between two rows; what was resealed stays so, and another call goes on. */
  readonly signal?: AbortSignal
  readonly onProgress?: (resealed: number) => void
}

const MAX_PASSES = 5
const UNREADABLE_KEPT = 100

/**
 * Puts every secret under the current key while others work. A replica that has not promoted the key yet may seal with the
 * old one behind this pass, so passes repeat until one finds nothing to do.
 */
export async function resealAll(rows: SealedRows, sealer: Sealer, options: ResealOptions = {}): Promise<ResealOutcome> {
  let resealed = 0
  for (let pass = 1; ; pass++) {
    const found = await resealOnce(rows, sealer, options, resealed)
    resealed += found.resealed
    const clean = found.resealed === 0 && found.overtaken === 0
    if (clean || pass === MAX_PASSES) {
      return {
        resealed,
        unreadable: found.unreadable,
        unreadableCount: found.unreadableCount,
        complete: clean && found.unreadableCount === 0,
      }
    }
  }
}

interface Pass {
  resealed: number
  overtaken: number
  unreadable: { place: SealPlace; code: string }[]
  unreadableCount: number
}

async function resealOnce(
  rows: SealedRows,
  sealer: Sealer,
  { batchSize = 500, signal, onProgress }: ResealOptions,
  resealedBefore: number,
): Promise<Pass> {
  const pass: Pass = { resealed: 0, overtaken: 0, unreadable: [], unreadableCount: 0 }
  let afterKey: string | null = null
  for (;;) {
    const batch: readonly SealedRow[] = await rows.next(afterKey, batchSize)
    for (const row of batch) {
      signal?.throwIfAborted()
      await resealRow(rows, sealer, row, pass)
    }
    onProgress?.(resealedBefore + pass.resealed)
    afterKey = batch.at(-1)?.key ?? afterKey
    if (batch.length < batchSize) return pass
  }
}

async function resealRow(rows: SealedRows, sealer: Sealer, row: SealedRow, pass: Pass): Promise<void> {
  let text: string | null
  try {
    text = await sealer.reseal(row.sealed, row.place)
  } catch (error) {
    pass.unreadableCount++
    if (pass.unreadable.length < UNREADABLE_KEPT) pass.unreadable.push({ place: row.place, code: codeOf(error) })
    return
  }
  if (text === null) return
  if (await rows.replace(row, row.sealed, text)) pass.resealed++
  else pass.overtaken++
}
