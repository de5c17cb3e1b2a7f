import { execFile } from 'node:child_process'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Disposer } from '../../src/disposer.ts'
import { benchDirectory, type Environment, importCatalogue, openBenchContext, settle } from './bench-context.ts'
import { median, round } from './figures.ts'
import { benchCatalogue } from './fixture.ts'
import { processMemory } from './process-memory.ts'
import { SandboxProcess } from './sandbox-process.ts'
import { neverNow, ServiceProcess } from './service-process.ts'

export interface SizeBenchOptions {
  /** That are in the database on which the service starts. */
  readonly registrations: number
  readonly rounds: number
  /** From ready to the look at its memory. */
  readonly idleSeconds: number
  readonly print: (line: object) => void
}

/** Where `npm run bench` runs: the build's parent. */
const ROOT = join(import.meta.dirname, '..', '..', '..')
const LARGEST = 6
/** There is nothing to compare with, and no promise. */
const ALONE = { ratio: null, goal: null }

/** What the service costs: on the disk, until it is ready, and in memory with nothing to do. A JSON line each. */
export async function benchSize({ registrations, rounds, idleSeconds, print }: SizeBenchOptions): Promise<void> {
  print({ case: 'package', ...ALONE, ...(await packageSize()) })
  print({ case: 'production-dependencies', ...ALONE, ...(await dependenciesSize()) })
  const opened = new Disposer()
  try {
    const env = await prepare(registrations, opened)
    const seconds: number[] = []
    for (let index = 0; index < rounds; index += 1) {
      const started = await startReady(env)
      seconds.push(started.seconds)
      await started.service.stop()
    }
    const name = `start-to-ready-with-${registrations}`
    print({ case: name, ...ALONE, seconds: round(median(seconds)), slowest: round(Math.max(...seconds)), rounds })
    print({ case: `idle-with-${registrations}`, ...ALONE, ...(await idleMemory(env, idleSeconds)), idleSeconds })
  } finally {
    await opened.dispose()
  }
}

interface PackedFile {
  readonly path: string
  readonly size: number
}

interface Packed {
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly PackedFile[]
}

async function packageSize() {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  })
  const [packed] = Object.values(JSON.parse(stdout) as Readonly<Record<string, Packed>>)
  if (packed === undefined) throw new Error('npm packed nothing')
  const sizeOf = (which: (path: string) => boolean): number =>
    packed.files.filter(({ path }) => which(path)).reduce((sum, { size }) => sum + size, 0)
  return {
    unpackedMb: megabytes(packed.unpackedSize),
    packedMb: megabytes(packed.size),
    files: packed.files.length,
    ofWhich: {
      sourceMapsMb: megabytes(sizeOf((path) => path.endsWith('.map'))),
      testsMb: megabytes(sizeOf((path) => path.startsWith('dist/test/') && !path.endsWith('.map'))),
    },
  }
}

interface LockedPackage {
  readonly dev?: boolean
}

/** Of what npm installed here, without what it installed for development only. */
async function dependenciesSize() {
  const text = await readFile(join(ROOT, 'node_modules', '.package-lock.json'), 'utf8')
  const { packages } = JSON.parse(text) as { readonly packages: Readonly<Record<string, LockedPackage>> }
  const sizes = await Promise.all(
    Object.entries(packages)
      .filter(([, { dev }]) => dev !== true)
      .map(async ([path]) => ({ path, bytes: await directoryBytes(join(ROOT, path)) })),
  )
  const installed = sizes.filter(({ bytes }) => bytes > 0).sort((one, other) => other.bytes - one.bytes)
  const bytes = installed.reduce((sum, each) => sum + each.bytes, 0)
  const largest = installed
    .slice(0, LARGEST)
    .map((each) => [each.path.replace(/^.*node_modules\//, ''), megabytes(each.bytes)])
  return { installedMb: megabytes(bytes), packages: installed.length, ofWhichMb: Object.fromEntries(largest) }
}

/** Without packages inside it, which count for themselves; 0 when it is not there. */
async function directoryBytes(directory: string): Promise<number> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  const sizes = entries.map(async (entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? 0 : directoryBytes(path)
    return (await lstat(path)).size
  })
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** A data directory with registrations that are all on their broker. */
async function prepare(registrations: number, opened: Disposer): Promise<Environment> {
  const sandbox = await SandboxProcess.start({ brokers: 1 })
  opened.defer(() => sandbox.stop())
  const env = { KEYMESH_DATA_DIR: join(await benchDirectory(opened), 'data') }
  const preparing = new Disposer()
  try {
    const context = await openBenchContext(env, preparing)
    const file = benchCatalogue(sandbox.only, registrations)
    await importCatalogue(context, file)
    await settle(context, file)
  } finally {
    // The service starts its database itself.
    await preparing.dispose()
  }
  return { ...env, KEYMESH_SWEEP_CRON: neverNow() }
}

async function startReady(env: Environment): Promise<{ readonly service: ServiceProcess; readonly seconds: number }> {
  const startedMs = performance.now()
  const service = await ServiceProcess.start(env)
  try {
    const { status } = await fetch(`${service.url}/readyz`)
    if (status !== 200) throw new Error(`the service started and is not ready: ${status}`)
    return { service, seconds: (performance.now() - startedMs) / 1000 }
  } catch (error) {
    await service.kill()
    throw error
  }
}

async function idleMemory(env: Environment, idleSeconds: number) {
  const { service } = await startReady(env)
  try {
    await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000))
    const { residentMb, descendantsResidentMb, descendantsProportionalMb } = await processMemory(service.pid)
    return {
      rssMb: Math.round(residentMb),
      databaseRssMb: Math.round(descendantsResidentMb),
      databaseProportionalMb: descendantsProportionalMb === null ? null : Math.round(descendantsProportionalMb),
    }
  } finally {
    await service.stop()
  }
}

const megabytes = (bytes: number): number => round(bytes / 1_000_000)
