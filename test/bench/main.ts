import process from 'node:process'
import { Command, InvalidArgumentError } from 'commander'
import { type ApiBenchOptions, benchApi } from './api.ts'
import { type BaselineBenchOptions, benchBaseline } from './baseline.ts'
import { benchConsole, type ConsoleBenchOptions } from './console.ts'
import { AILMENTS, benchFleet, type FleetBenchOptions } from './fleet.ts'
import { benchLatency, type LatencyBenchOptions } from './latency.ts'
import { benchReconcile } from './reconcile.ts'
import { benchScaleOut } from './scale-out.ts'
import { benchSize, type SizeBenchOptions } from './size.ts'
import { benchVerify, MEASURED_PROTOCOLS, type VerifyBenchOptions } from './verify.ts'

/** What a bench is told on the command line. */
type Flags<Options> = Omit<Options, 'print'>

const numbers = (text: string): readonly number[] => text.split(',').map(Number)
const print = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Names separated by commas, each one of these. */
const namesOf =
  <Name extends string>(known: readonly Name[]) =>
  (text: string): readonly Name[] =>
    text.split(',').map((each) => {
      const name = known.find((one) => one === each)
      if (name === undefined) throw new InvalidArgumentError(`There are ${known.join(', ')}.`)
      return name
    })

const program = new Command('bench').description('measure; one JSON line per case, ratios within one run')
program
  .command('reconcile')
  .description('first apply and sweeps of one broker, against a bare loop that sends the same requests')
  .option('--sizes <counts>', 'registrations', numbers, [1000, 10_000])
  .option('--latencies <ms>', 'broker latencies', numbers, [0, 20])
  .option('--rounds <count>', 'measured pairs of each case', Number, 3)
  .action(async (options: { sizes: readonly number[]; latencies: readonly number[]; rounds: number }) => {
    await benchReconcile({
      sizes: options.sizes,
      latenciesMs: options.latencies,
      rounds: options.rounds,
      print,
    })
  })
program
  .command('api')
  .description('reads of the catalogue, against a bare handler that runs the same SQL and sends the same bytes')
  .option('--products <count>', 'visible products', Number, 10_000)
  .option('--connections <count>', 'connections of the client', Number, 10)
  .option('--seconds <count>', 'of each measurement', Number, 4)
  .option('--rounds <count>', 'measurements of each side', Number, 5)
  .action(async (options: Flags<ApiBenchOptions>) => {
    await benchApi({ ...options, print })
  })
program
  .command('verify')
  .description('logins with every credential of one broker, against a bare loop of the same clients')
  .option('--credentials <count>', 'on the broker', Number, 10_000)
  .option(
    '--protocols <names>',
    'separated by commas; those of SMF are not measured',
    namesOf(MEASURED_PROTOCOLS),
    MEASURED_PROTOCOLS,
  )
  .option('--concurrency <count>', 'logins at a time', Number, 16)
  .option('--rounds <count>', 'measured pairs of each protocol', Number, 3)
  .action(async (options: Flags<VerifyBenchOptions>) => {
    await benchVerify({ ...options, print })
  })
program
  .command('latency')
  .description('from an access request over the API to the login with its credential: idle, and under sweeps')
  .option('--brokers <count>', 'simulated', Number, 5)
  .option('--registrations <count>', 'on each broker', Number, 2000)
  .option('--requests <count>', 'access requests of each measurement', Number, 200)
  .option('--every-ms <ms>', 'between two access requests', Number, 250)
  .option('--latency-ms <ms>', 'of the brokers', Number, 20)
  .option('--rounds <count>', 'measurements of each side', Number, 1)
  .action(async (options: Flags<LatencyBenchOptions>) => {
    await benchLatency({ ...options, print })
  })
program
  .command('fleet')
  .description('first apply on the healthy brokers of a fleet, against the same without the sick ones beside them')
  .option('--brokers <count>', 'simulated', Number, 20)
  .option('--sick <count>', 'of them', Number, 5)
  .option('--registrations <count>', 'on each broker', Number, 50)
  .option('--latency-ms <ms>', 'of the healthy brokers', Number, 20)
  .option('--ailments <names>', 'separated by commas', namesOf(AILMENTS), AILMENTS)
  .option('--rounds <count>', 'measured pairs of each ailment', Number, 3)
  .action(async (options: Flags<FleetBenchOptions>) => {
    await benchFleet({ ...options, print })
  })
program
  .command('scale-out')
  .description('first apply by one worker process and by several')
  .option('--workers <counts>', 'processes; the first is what the others are compared with', numbers, [1, 2, 4])
  .option('--brokers <count>', 'simulated', Number, 16)
  .option('--registrations <count>', 'on each broker', Number, 100)
  .option('--latency-ms <ms>', 'of the brokers', Number, 20)
  .option('--concurrency <count>', "registrations side by side on one broker and process; the service's own", Number)
  .option('--rounds <count>', 'measurements of each count', Number, 3)
  .action(
    async (options: {
      workers: readonly number[]
      brokers: number
      registrations: number
      latencyMs: number
      concurrency?: number
      rounds: number
    }) => {
      await benchScaleOut({ ...options, concurrency: options.concurrency ?? null, print })
    },
  )
program
  .command('baseline')
  .description('first apply and re-check, against an executor that goes object by object')
  .option('--registrations <count>', 'on the broker', Number, 1000)
  .option('--latency-ms <ms>', 'of the broker', Number, 20)
  .option('--limited-registrations <count>', 'where requests are limited', Number, 20)
  .option('--requests-per-second <count>', 'the limit', Number, 10)
  .action(async (options: Flags<BaselineBenchOptions>) => {
    await benchBaseline({ ...options, print })
  })
program
  .command('console')
  .description('pages of the console, by server time, against what a page may take')
  .option('--registrations <count>', 'each on up to five brokers', Number, 10_000)
  .option('--brokers <count>', 'declared; nothing is sent to them', Number, 50)
  .option('--requests <count>', 'measured of each page', Number, 100)
  .action(async (options: Flags<ConsoleBenchOptions>) => {
    await benchConsole({ ...options, print })
  })
program
  .command('size')
  .description('what the service costs: on the disk, until it is ready, and in memory with nothing to do')
  .option('--registrations <count>', 'in the database on which it starts', Number, 1000)
  .option('--rounds <count>', 'starts', Number, 5)
  .option('--idle-seconds <seconds>', 'until its memory is looked at', Number, 60)
  .action(async (options: Flags<SizeBenchOptions>) => {
    await benchSize({ ...options, print })
  })
await program.parseAsync(process.argv)
