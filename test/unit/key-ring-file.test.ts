import { randomUUID } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { followKeyRing } from '../../src/secrets/following-key-ring.ts'
import { newKeyRing } from '../../src/secrets/key-ring.ts'
import { keyRingPath, openKeyRingFile, readKeyRingFile, writeKeyRingFile } from '../../src/secrets/key-ring-file.ts'

let dataDirectory: string
let said: string[]
const log = { warn: (fields: object, message: string) => said.push(`${message} ${JSON.stringify(fields)}`) }

beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'keymesh-ring-'))
  said = []
})
afterEach(() => rm(dataDirectory, { recursive: true, force: true }))

const open = (mayCreate = true) => openKeyRingFile({ dataDirectory, mayCreate, log })

describe('the key ring file', () => {
  it('is created at the first start, for its owner only, and said', async () => {
    const ring = await open()
    const path = keyRingPath(dataDirectory)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(said).toHaveLength(1)
    expect(said[0]).toContain(path)
    const key = ring.keys.get(ring.current)?.export()
    expect(said[0]).not.toContain(key?.toString('base64url'))
    expect(await readdir(dataDirectory)).toEqual(['keys.json'])
    const again = await open()
    expect(again.current).toBe(ring.current)
    expect(again.keys.get(again.current)?.export()).toEqual(key)
    expect(said).toHaveLength(1)
  })

  it('is one ring when many processes start together', async () => {
    const rings = await Promise.all(Array.from({ length: 10 }, () => open()))
    expect(new Set(rings.map(({ current }) => current)).size).toBe(1)
    expect(said).toHaveLength(1)
  })

  it('is not created when the database holds secrets already', async () => {
    await expect(open(false)).rejects.toMatchObject({ code: 'KEY_RING_MISSING', fate: 'stop' })
    expect(await readdir(dataDirectory)).toEqual([])
  })

  it.each([0o640, 0o604, 0o660, 0o644])('is refused, and kept, with mode %o', async (mode) => {
    await open()
    const path = keyRingPath(dataDirectory)
    const before = await readFile(path)
    await chmod(path, mode)
    await expect(open()).rejects.toMatchObject({ code: 'KEY_RING_EXPOSED', hint: expect.stringContaining('chmod 600') })
    expect(await readFile(path)).toEqual(before)
  })

  it.each([0, 1, 30, 60, 90])('is refused, and kept, when it is cut to %i bytes', async (bytes) => {
    await open()
    const path = keyRingPath(dataDirectory)
    await truncate(path, bytes)
    const before = await readFile(path)
    await expect(open()).rejects.toMatchObject({ code: 'KEY_RING_INVALID', message: expect.stringContaining(path) })
    expect(await readFile(path)).toEqual(before)
  })

  it('is replaced whole', async () => {
    await open()
    const path = keyRingPath(dataDirectory)
    const next = newKeyRing()
    await writeKeyRingFile(path, next)
    expect((await readKeyRingFile(path))?.current).toBe(next.current)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(dataDirectory)).toEqual(['keys.json'])
  })

  it('takes along what a process left that was killed while it wrote', async () => {
    await open()
    const path = keyRingPath(dataDirectory)
    await writeFile(`${path}.${randomUUID()}`, 'half a ring')
    await writeFile(`${path}.backup`, 'of a person')
    await writeKeyRingFile(path, newKeyRing())
    expect((await readdir(dataDirectory)).toSorted()).toEqual(['keys.json', 'keys.json.backup'])
  })

  it('is followed through two changes that the clock of the file system does not tell apart', async () => {
    const ring = await open()
    const path = keyRingPath(dataDirectory)
    const follow = followKeyRing(path, ring)
    for (const next of [newKeyRing(), newKeyRing(), newKeyRing()]) {
      await writeKeyRingFile(path, next)
      await utimes(path, 1_700_000_000, 1_700_000_000)
      expect((await follow()).current).toBe(next.current)
    }
  })

  it('that cannot be read or written is a clear error', async () => {
    await mkdir(keyRingPath(dataDirectory), { mode: 0o700 })
    await expect(open()).rejects.toMatchObject({ code: 'KEY_RING_UNAVAILABLE' })
    const file = join(dataDirectory, 'file')
    await writeFile(file, '')
    await expect(writeKeyRingFile(keyRingPath(file), newKeyRing())).rejects.toMatchObject({
      code: 'KEY_RING_UNAVAILABLE',
    })
  })
})
