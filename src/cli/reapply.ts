import { Command } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { chosen, type PlaceOptions } from './options.ts'
import { printRuns } from './print-runs.ts'
import { onStoreOrService } from './service-option.ts'

export function reapplyCommand(dependencies: CommandDependencies): Command {
  const command = new Command('reapply')
    .description('write stored passwords to the brokers again, whatever the ledger says')
    .option('--registration <id>', 'the passwords of all credentials of this registration')
    .option('--credential <consumer-key>', 'the password of this client username')
    .option('--broker <id>', 'only on this broker')
    .option('--json', 'print one JSON document per registration and broker')
    .action(async (options: PlaceOptions & { readonly credential?: string }, command: Command) => {
      const { credential } = options
      if (options.registration === undefined && credential === undefined) {
        throw new InvalidInputError('The command line', [{ message: 'give --registration, --credential, or both' }])
      }
      const output = dependencies.output(command)
      const request = { ...chosen(options), ...(credential === undefined ? {} : { consumerKey: credential }) }
      await operate(dependencies, command, async (operations) => {
        const { good } = await printRuns(operations.reapply(request, dependencies.signal), output)
        if (!good) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    notes: 'A password that is written again is the same one: clients that use it stay connected.',
    examples: [
      'keymesh reapply --credential Xq4k9TzB2mWcR7LpE5vNaH1s',
      'keymesh reapply --registration parcel-tracker --broker broker-eu',
    ],
    exit: { 0: 'all were written', 1: 'something failed, is busy or waits for a person' },
  })
}
