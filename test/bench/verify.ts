import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { Disposer } from '../../src/disposer.ts'
import type { Protocol } from '../../src/domain/catalogue.ts'
import { benchDirectory, importCatalogue, openBenchContext, settle } from './bench-context.ts'
import { median, round } from './figures.ts'
import { meshCatalogue } from './fixture.ts'
import { SandboxProcess } from './sandbox-process.ts'
import type { VerifyChildResult } from './verify-child.ts'

/** All but SMF: the licence of its client keeps measurements of it private. */
export const MEASURED_PROTOCOLS = [
  'mqtt',
  'secure-mqtt',
  'mqttws',
  'secure-mqttws',
  'amqp',
  'amqps',
  'http',
  'https',
] as const satisfies readonly Protocol[]
export type MeasuredProtocol = (typeof MEASURED_PROTOCOLS)[number]

export interface VerifyBenchOptions {
  readonly credentials: number
  readonly protocols: readonly MeasuredProtocol[]
  /** Logins at a time, on both sides. */
  readonly concurrency: number
  readonly rounds: number
  readonly print: (line: object) => void
}

const GOAL = 1.25
/** More than any machine reaches: the pace is not what is measured. */
const NO_PACE = 1_000_000

/**
 * A verification of every credential of one broker, against a bare loop of the same clients; one JSON line per protocol.
 * The ratio is the product's seconds to the loop's.
 */
export async function benchVerify(options: VerifyBenchOptions): Promise<void> {
  const { credentials, protocols, concurrency, print } = options
  const opened = new Disposer()
  try {
    const sandbox = await SandboxProcess.start({ brokers: 1, logins: protocols })
    opened.defer(() => sandbox.stop())
    const dataDirectory = join(await benchDirectory(opened), 'data')
    const context = await openBenchContext({ KEYMESH_DATA_DIR: dataDirectory, KEYMESH_LOGINS: 'false' }, opened)
    const { endpoints, caCertificate } = sandbox.only
    const logins = { off: [], maxPerSecond: NO_PACE, maxConcurrent: concurrency }
    const file = meshCatalogue([sandbox.only], {
      registrations: credentials,
      broker: (declared) => ({
        ...declared,
        messaging: { host: 'localhost', protocols: endpoints, caCertificate, logins },
      }),
    })
    await importCatalogue(context, file)
    await settle(context, file)
    for (const protocol of protocols) print(await measure(protocol, dataDirectory, options))
  } finally {
    await opened.dispose()
  }
}

async function measure(
  protocol: MeasuredProtocol,
  dataDirectory: string,
  { credentials, concurrency, rounds }: VerifyBenchOptions,
) {
  const ours: VerifyChildResult[] = []
  const bare: VerifyChildResult[] = []
  for (let index = 0; index < rounds; index += 1) {
    const settings = { protocol, dataDirectory, concurrency }
    ours.push(await runChild('verify', settings))
    bare.push(await runChild('bare', settings))
  }
  const seconds = median(ours.map((run) => run.seconds))
  const bareSeconds = median(bare.map((run) => run.seconds))
  const last = ours.at(-1)
  return {
    case: `verify-${credentials}-over-${protocol}`,
    ratio: round(median(ours.map((run, index) => run.seconds / (bare[index]?.seconds ?? Number.NaN)))),
    goal: GOAL,
    seconds: round(seconds),
    bareSeconds: round(bareSeconds),
    loginsPerSecond: Math.round(credentials / seconds),
    bareLoginsPerSecond: Math.round(credentials / bareSeconds),
    cpuSeconds: round(median(ours.map((run) => run.cpuSeconds))),
    bareCpuSeconds: round(median(bare.map((run) => run.cpuSeconds))),
    peakRssMb: Math.round(Math.max(...ours.map((run) => run.maxRssMb))),
    barePeakRssMb: Math.round(Math.max(...bare.map((run) => run.maxRssMb))),
    handlesBefore: last?.handlesBefore,
    handlesAfter: last?.handlesAfter,
    failed: Math.max(...ours.map((run) => credentials - run.logins + run.failed)),
    bareFailed: Math.max(...bare.map((run) => credentials - run.logins + run.failed)),
    concurrency,
    rounds,
  }
}

interface ChildSettings {
  readonly protocol: MeasuredProtocol
  readonly dataDirectory: string
  readonly concurrency: number
}

async function runChild(mode: 'verify' | 'bare', { protocol, dataDirectory, concurrency }: ChildSettings) {
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'verify-child.js')], {
    env: {
      ...process.env,
      BENCH_MODE: mode,
      BENCH_PROTOCOL: protocol,
      BENCH_CONCURRENCY: String(concurrency),
      KEYMESH_DATA_DIR: dataDirectory,
    },
  })
  return JSON.parse(stdout) as VerifyChildResult
}
