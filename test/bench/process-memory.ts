import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface ProcessMemory {
  readonly residentMb: number
  /** Of the processes that it started, and those that they did; shared pages are counted once for each. */
  readonly descendantsResidentMb: number
  /** The same with each shared page divided among those that share it; null where the system does not tell. */
  readonly descendantsProportionalMb: number | null
}

/** By `ps`, and by Linux where that is the system. */
export async function processMemory(pid: number): Promise<ProcessMemory> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,rss='])
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([own = 0, parent = 0, residentKb = 0]) => ({ pid: own, parent, residentKb }))
  const family = new Set([pid])
  for (let known = 0; known !== family.size; ) {
    known = family.size
    for (const row of rows) if (family.has(row.parent)) family.add(row.pid)
  }
  family.delete(pid)
  const residentMb = (which: (id: number) => boolean): number =>
    rows.filter((row) => which(row.pid)).reduce((sum, row) => sum + row.residentKb, 0) / 1024
  return {
    residentMb: residentMb((id) => id === pid),
    descendantsResidentMb: residentMb((id) => family.has(id)),
    descendantsProportionalMb: await proportionalMb([...family]),
  }
}

async function proportionalMb(pids: readonly number[]): Promise<number | null> {
  try {
    const texts = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8')))
    return texts.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1] ?? Number.NaN), 0) / 1024
  } catch {
    return null
  }
}
