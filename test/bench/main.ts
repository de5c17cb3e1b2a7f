import process from 'node:process'
import { Command } from 'commander'
import { benchApi } from './api.ts'
import { benchReconcile } from './reconcile.ts'

const numbers = (text: string): readonly number[] => text.split(',').map(Number)

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
      print: (line) => process.stdout.write(`${JSON.stringify(line)}\n`),
    })
  })
program
  .command('api')
  .description('reads of the catalogue, against a bare handler that runs the same SQL and sends the same bytes')
  .option('--products <count>', 'visible products', Number, 10_000)
  .option('--connections <count>', 'connections of the client', Number, 10)
  .option('--seconds <count>', 'of each measurement', Number, 4)
  .option('--rounds <count>', 'measurements of each side', Number, 5)
  .action(async (options: { products: number; connections: number; seconds: number; rounds: number }) => {
    await benchApi({ ...options, print: (line) => process.stdout.write(`${JSON.stringify(line)}\n`) })
  })
await program.parseAsync(process.argv)
