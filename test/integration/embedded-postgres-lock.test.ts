import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type DataDirectoryLock, tryLockDirectory } from '../../src/store/data-directory-lock.ts'

let directory: string
let taken: DataDirectoryLock[]

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-lock-'))
  taken = []
})
afterEach(async () => {
  await Promise.all(taken.map((lock) => lock.release()))
  await rm(directory, { recursive: true, force: true })
})

async function tryLock(unseenHolderDeadAfterMs?: number): Promise<DataDirectoryLock | null> {
  const { lock } = await tryLockDirectory(directory, unseenHolderDeadAfterMs)
  if (lock === undefined) return null
  taken.push(lock)
  return lock
}

async function highest(): Promise<string> {
  const names = (await readdir(directory)).filter((name) => name.startsWith('lock.'))
  const number = Math.max(...names.map((name) => Number(name.slice('lock.'.length))))
  return join(directory, `lock.${number}`)
}

/** Leaves a lock whose holder differs from this process as told. */
async function leaveLock(change: Record<string, unknown>): Promise<string> {
  await tryLock()
  const path = await highest()
  const holder = JSON.parse(await readFile(path, 'utf8'))
  await Promise.all(taken.splice(0).map((lock) => lock.release()))
  await writeFile(path, JSON.stringify({ ...holder, ...change }))
  return path
}

/** The id of a process that has ended and was reaped. */
async function deadPid(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  if (child.pid === undefined) throw new Error('true did not start')
  return child.pid
}

describe('the lock of a data directory', () => {
  it('has one holder of many that try at once, and another after it lets go', async () => {
    const locks = await Promise.all(Array.from({ length: 20 }, () => tryLock()))
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1)
    expect(await tryLock()).toBeNull()
    await taken[0]?.release()
    const again = await Promise.all(Array.from({ length: 20 }, () => tryLock()))
    expect(again.filter((lock) => lock !== null)).toHaveLength(1)
  })

  it('names its holder', async () => {
    const lock = await tryLock()
    expect((await tryLockDirectory(directory)).holder).toEqual({ token: lock?.token, pid: process.pid })
  })

  it.each(['a process that is gone', 'a process whose id was reused', 'a file cut short'])(
    'passes to one of many after %s',
    async (title) => {
      const path = await leaveLock(
        title === 'a process that is gone' ? { pid: await deadPid() } : { processStart: '1' },
      )
      if (title === 'a file cut short') await truncate(path, 20)
      const locks = await Promise.all(Array.from({ length: 20 }, () => tryLock()))
      expect(locks.filter((lock) => lock !== null)).toHaveLength(1)
      expect(await readdir(directory)).toHaveLength(1)
    },
  )

  it('stays with a holder in another container while that gives signs of life, and passes on when it does not', async () => {
    const path = await leaveLock({ scope: 'elsewhere' })
    const beat = setInterval(() => void utimes(path, new Date(), new Date()), 20)
    try {
      expect(await tryLock(500)).toBeNull()
    } finally {
      clearInterval(beat)
    }
    expect(await tryLock(300)).not.toBeNull()
  })
})
