import { Command } from 'commander'
import { OBJECT_KINDS } from '../domain/broker-object.ts'
import { InvalidInputError } from '../domain/errors.ts'
import { recordAdoption } from '../store/pairs.ts'
import type { CommandDependencies } from './command.ts'
import { selectBrokers } from './select.ts'

interface AdoptOptions {
  readonly broker: string
  readonly kind: string
  readonly name: string
}

export function adoptCommand(dependencies: CommandDependencies): Command {
  return new Command('adopt')
    .description('take over an existing broker object that stands in conflict with one of ours')
    .requiredOption('--broker <id>', 'the broker that holds it')
    .requiredOption('--kind <kind>', OBJECT_KINDS.join(', '))
    .requiredOption('--name <name>', 'its name on the broker')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
The next run changes the object to what Keymesh wants; for a client username it also writes the stored password, which
locks out whoever used it before.
Example:
  keymesh adopt --broker broker-eu --kind clientUsername --name legacy-tracker
Exit status: 0 recorded, 2 bad input.`,
    )
    .action(async (options: AdoptOptions, command: Command) => {
      const output = dependencies.output(command)
      const kind = OBJECT_KINDS.find((known) => known === options.kind)
      if (kind === undefined) {
        throw new InvalidInputError('The command line', [
          { path: '--kind', message: `must be one of ${OBJECT_KINDS.join(', ')}` },
        ])
      }
      await dependencies.withContext(async (context) => {
        const [broker] = await selectBrokers(context, options.broker)
        if (broker === undefined) return
        await recordAdoption(context.db, broker, { kind, name: options.name }, 'command line')
        output.line(`Recorded. \`keymesh plan --broker ${options.broker}\` shows what will change.`)
        if (output.json) output.document({ brokerId: options.broker, kind, name: options.name, adopted: true })
      })
    })
}
