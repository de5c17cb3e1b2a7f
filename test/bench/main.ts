import process from 'node:process'
import { Command } from 'commander'
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
await program.parseAsync(process.argv)
