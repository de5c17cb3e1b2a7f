import { Command } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import { requestPasswords } from '../store/pairs.ts'
import type { CommandDependencies } from './command.ts'
import { runPairs } from './run-pairs.ts'

interface ReapplyOptions {
  readonly registration?: string
  readonly credential?: string
  readonly broker?: string
}

export function reapplyCommand(dependencies: CommandDependencies): Command {
  return new Command('reapply')
    .description('write stored passwords to the brokers again, whatever the ledger says')
    .option('--registration <id>', 'the passwords of all credentials of this registration')
    .option('--credential <consumer-key>', 'the password of this client username')
    .option('--broker <id>', 'only on this broker')
    .option('--json', 'print one JSON document per registration and broker')
    .addHelpText(
      'after',
      `
Examples:
  keymesh reapply --credential Xq4k9TzB2mWcR7LpE5vNaH1s
  keymesh reapply --registration parcel-tracker --broker broker-eu

A password that is written again is the same one: clients that use it stay connected.
Exit status: 0 all were written, 1 something failed or waits for a person, 2 bad input.`,
    )
    .action(async (options: ReapplyOptions, command: Command) => {
      if (options.registration === undefined && options.credential === undefined) {
        throw new InvalidInputError('The command line', [{ message: 'give --registration, --credential, or both' }])
      }
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        const pairs = await requestPasswords(context.db, {
          accountId: context.accountId,
          ...(options.broker === undefined ? {} : { brokerId: options.broker }),
          ...(options.registration === undefined ? {} : { registrationId: options.registration }),
          ...(options.credential === undefined ? {} : { consumerKey: options.credential }),
        })
        if (pairs.length === 0) {
          throw new InvalidInputError('The command line', [
            { message: 'no client username that Keymesh holds on a broker matches' },
          ])
        }
        const run = { allowDisruptive: false, signal: dependencies.signal }
        if (!(await runPairs(context, pairs, run, output))) dependencies.exitWith(1)
      })
    })
}
