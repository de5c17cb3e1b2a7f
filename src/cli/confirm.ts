import { Command } from 'commander'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { printRuns } from './print-runs.ts'
import { onStoreOrService } from './service-option.ts'

export function confirmCommand(dependencies: CommandDependencies): Command {
  const command = new Command('confirm')
    .description('accept the withdrawals that were refused because there were too many at once')
    .requiredOption('--broker <id>', 'the broker they wait on')
    .option('--json', 'print one JSON document per registration')
    .action(async ({ broker }: { readonly broker: string }, command: Command) => {
      const output = dependencies.output(command)
      await operate(dependencies, command, async (operations) => {
        const { good, runs } = await printRuns(operations.confirmWithdrawals(broker, dependencies.signal), output)
        if (runs === 0) output.line(`No withdrawal waits for a confirmation on broker ${broker}.`)
        if (!good) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    notes: 'Look first: `keymesh plan --broker ID` shows what would be withdrawn.',
    examples: ['keymesh plan --broker broker-eu', 'keymesh confirm --broker broker-eu'],
    exit: { 0: 'done, or nothing waited', 1: 'something failed, is busy or still waits' },
  })
}
