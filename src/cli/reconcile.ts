import { Command } from 'commander'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { chosen, type PlaceOptions } from './options.ts'
import { printRuns } from './print-runs.ts'
import { onStoreOrService } from './service-option.ts'

export function reconcileCommand(dependencies: CommandDependencies): Command {
  const command = new Command('reconcile')
    .description('make the brokers match now: all, one broker, or one registration')
    .option('--broker <id>', 'only this broker')
    .option('--registration <id>', 'only this registration')
    .option('--allow-disruptive', 'also run actions that drop live clients')
    .option('--json', 'print one JSON document per broker or registration')
    .action(async (options: PlaceOptions & { readonly allowDisruptive?: boolean }, command: Command) => {
      const output = dependencies.output(command)
      const request = { ...chosen(options), allowDisruptive: options.allowDisruptive ?? false }
      await operate(dependencies, command, async (operations) => {
        const { good } = await printRuns(operations.reconcile(request, dependencies.signal), output)
        if (!good) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh reconcile', 'keymesh reconcile --registration parcel-tracker --allow-disruptive'],
    exit: { 0: 'everything is as it should be', 1: 'something failed, is busy or waits for a person' },
  })
}
