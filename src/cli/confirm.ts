import { Command } from 'commander'
import { confirmWithdrawals } from '../store/pairs.ts'
import type { CommandDependencies } from './command.ts'
import { runPairs } from './run-pairs.ts'
import { selectBrokers } from './select.ts'

export function confirmCommand(dependencies: CommandDependencies): Command {
  return new Command('confirm')
    .description('accept the withdrawals that were refused because there were too many at once')
    .requiredOption('--broker <id>', 'the broker they wait on')
    .option('--json', 'print one JSON document per registration')
    .addHelpText(
      'after',
      `
Look first: keymesh plan --broker ID shows what would be withdrawn.
Exit status: 0 done, 1 something failed or still waits, 2 bad input.`,
    )
    .action(async (options: { readonly broker: string }, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        const [broker] = await selectBrokers(context, options.broker)
        if (broker === undefined) return
        const pairs = await confirmWithdrawals(context.db, broker)
        if (pairs.length === 0) output.line(`No withdrawal waits for a confirmation on broker ${options.broker}.`)
        const run = { allowDisruptive: false, signal: dependencies.signal }
        if (!(await runPairs(context, pairs, run, output))) dependencies.exitWith(1)
      })
    })
}
