import { describe, expect, it } from 'vitest'
import type { SealPlace } from '../../src/domain/seal-place.ts'
import { Secret } from '../../src/domain/secret.ts'
import { addKey, newKey, newKeyRing, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'
import { resealAll, type SealedRow, type SealedRows } from '../../src/secrets/rotate.ts'
import { createSealer, kidOf, type Sealer } from '../../src/secrets/seal.ts'

const oldRing = newKeyRing()
const next = newKey()
const ring = promoteKey(addKey(oldRing, next.kid, next.key), next.kid)
const oldSealer = createSealer(oldRing)
const sealer = createSealer(ring)

const placeOf = (key: string, version = 1): SealPlace => ({
  accountId: 'acme',
  table: 'credentials',
  rowId: key,
  column: 'secret',
  version,
})

class MemoryRows implements SealedRows {
  readonly rows = new Map<string, { place: SealPlace; sealed: string }>()
  reads = 0
  beforeReplace: (row: SealedRow) => Promise<void> = async () => undefined

  async put(key: string, text: string, by: Sealer, version = 1): Promise<void> {
    const place = placeOf(key, version)
    this.rows.set(key, { place, sealed: await by.seal(new Secret(text), place) })
  }

  async next(afterKey: string | null, limit: number): Promise<readonly SealedRow[]> {
    this.reads++
    const keys = [...this.rows.keys()].sort().filter((key) => afterKey === null || key > afterKey)
    return keys.slice(0, limit).flatMap((key) => {
      const row = this.rows.get(key)
      return row === undefined ? [] : [{ key, ...row }]
    })
  }

  async replace(row: SealedRow, expected: string, resealed: string): Promise<boolean> {
    await this.beforeReplace(row)
    const stored = this.rows.get(row.key)
    if (stored?.sealed !== expected) return false
    this.rows.set(row.key, { ...stored, sealed: resealed })
    return true
  }

  async openAll(by: Sealer): Promise<string[]> {
    return Promise.all(
      [...this.rows.values()].map(async ({ place, sealed }) => (await by.open(sealed, place)).reveal()),
    )
  }
}

async function filled(count: number): Promise<MemoryRows> {
  const rows = new MemoryRows()
  for (let index = 0; index < count; index++) await rows.put(`row${index}`, `secret ${index}`, oldSealer)
  return rows
}

describe('resealAll', () => {
  it.each([0, 1, 6, 7, 8])(
    'puts %i rows under the current key in batches, so that the old one can go',
    async (count) => {
      const rows = await filled(count)
      const progress: number[] = []
      const outcome = await resealAll(rows, sealer, { batchSize: 7, onProgress: (resealed) => progress.push(resealed) })
      expect(outcome).toEqual({ resealed: count, unreadable: [], unreadableCount: 0, complete: true })
      const withoutOld = createSealer(removeKey(ring, oldRing.current))
      expect(await rows.openAll(withoutOld)).toEqual(Array.from({ length: count }, (_, index) => `secret ${index}`))
      expect(progress.at(-1)).toBe(count)
    },
  )

  it('lets a secret that changes meanwhile win', async () => {
    const rows = await filled(3)
    rows.beforeReplace = async (row) => {
      rows.beforeReplace = async () => undefined
      await rows.put(row.key, 'newer', oldSealer, 2)
    }
    const outcome = await resealAll(rows, sealer)
    expect(outcome).toMatchObject({ resealed: 3, complete: true })
    expect(await rows.openAll(sealer)).toEqual(['newer', 'secret 1', 'secret 2'])
    expect([...rows.rows.values()].map(({ sealed }) => kidOf(sealed))).toEqual([next.kid, next.kid, next.kid])
  })

  it('finds what a replica with the old key seals behind it', async () => {
    const rows = await filled(2)
    rows.beforeReplace = async (row) => {
      if (row.key !== 'row1') return
      rows.beforeReplace = async () => undefined
      await rows.put('before', 'late', oldSealer)
    }
    expect(await resealAll(rows, sealer)).toMatchObject({ resealed: 3, complete: true })
  })

  it('does not call itself complete while old secrets keep coming', async () => {
    const rows = await filled(1)
    rows.beforeReplace = async (row) => rows.put(row.key, 'again', oldSealer)
    const outcome = await resealAll(rows, sealer)
    expect(outcome).toMatchObject({ resealed: 0, complete: false })
  })

  it('leaves what it cannot open, says which, and goes on', async () => {
    const rows = await filled(3)
    await rows.put('row1', 'lost', createSealer(newKeyRing()))
    const before = rows.rows.get('row1')?.sealed
    const outcome = await resealAll(rows, sealer)
    expect(outcome).toEqual({
      resealed: 2,
      unreadable: [{ place: placeOf('row1'), code: 'KEY_MISSING' }],
      unreadableCount: 1,
      complete: false,
    })
    expect(rows.rows.get('row1')?.sealed).toBe(before)
  })

  it('stops between rows when told, keeping what was done', async () => {
    const rows = await filled(3)
    const abort = new AbortController()
    rows.beforeReplace = async () => abort.abort()
    await expect(resealAll(rows, sealer, { signal: abort.signal })).rejects.toThrow()
    expect([...rows.rows.values()].map(({ sealed }) => kidOf(sealed))).toEqual([
      next.kid,
      oldRing.current,
      oldRing.current,
    ])
    expect((await resealAll(rows, sealer)).resealed).toBe(2)
  })
})
