import { Command } from 'commander'
import { OBJECT_KINDS } from '../domain/broker-object.ts'
import { InvalidInputError } from '../domain/errors.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { onStoreOrService } from './service-option.ts'

interface AdoptOptions {
  readonly broker: string
  readonly kind: string
  readonly name: string
}

export function adoptCommand(dependencies: CommandDependencies): Command {
  const command = new Command('adopt')
    .description('take over an existing broker object that stands in conflict with one of ours')
    .requiredOption('--broker <id>', 'the broker that holds it')
    .requiredOption('--kind <kind>', OBJECT_KINDS.join(', '))
    .requiredOption('--name <name>', 'its name on the broker')
    .option('--json', 'print one JSON document')
    .action(async (options: AdoptOptions, command: Command) => {
      const output = dependencies.output(command)
      const kind = OBJECT_KINDS.find((known) => known === options.kind)
      if (kind === undefined) {
        throw new InvalidInputError('The command line', [
          { path: '--kind', message: `must be one of ${OBJECT_KINDS.join(', ')}` },
        ])
      }
      const { broker: brokerId, name } = options
      await operate(dependencies, command, (operations) => operations.adopt({ brokerId, kind, name }))
      output.line(`Recorded. \`keymesh plan --broker ${brokerId}\` shows what will change.`)
      if (output.json) output.document({ brokerId, kind, name, adopted: true })
    })
  return explained(onStoreOrService(command), {
    notes: `The next run changes the object to what Keymesh wants; for a client username it also writes the stored password, which
locks out whoever used it before.`,
    examples: ['keymesh adopt --broker broker-eu --kind clientUsername --name legacy-tracker'],
    exit: { 0: 'recorded', 1: 'it could not be recorded' },
  })
}
