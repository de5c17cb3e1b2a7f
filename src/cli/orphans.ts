import { Command } from 'commander'
import { OBJECT_KINDS } from '../domain/broker-object.ts'
import { InvalidInputError } from '../domain/errors.ts'
import type { Orphan, OrphanDeletion } from '../operations/operations.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { table } from './output.ts'
import { onStoreOrService } from './service-option.ts'

interface OrphansOptions {
  readonly broker?: string
  readonly delete?: boolean
  readonly kind?: string
  readonly name?: string
  readonly all?: boolean
}

export function orphansCommand(dependencies: CommandDependencies): Command {
  const command = new Command('orphans')
    .description('list broker objects that look like those of Keymesh and are not in its ledger')
    .option('--broker <id>', 'one broker; all when absent')
    .option('--delete', 'delete them; needs --broker, and --kind with --name, or --all')
    .option('--kind <kind>', OBJECT_KINDS.join(', '))
    .option('--name <name>', 'the name on the broker')
    .option('--all', 'with --delete: every one that the list shows')
    .option('--json', 'print one JSON document')
    .action(async (options: OrphansOptions, command: Command) => {
      const output = dependencies.output(command)
      const { signal } = dependencies
      const deletion = options.delete === true ? deletionOf(options) : null
      await operate(dependencies, command, async (operations) => {
        const found: Orphan[] = []
        const objects =
          deletion === null ? operations.orphans(options.broker, signal) : operations.deleteOrphans(deletion, signal)
        for await (const orphan of objects) found.push(orphan)
        if (found.length === 0)
          output.line('No broker holds an object that looks like one of Keymesh and is not in its ledger.')
        else {
          const rows = found.map(({ brokerId, kind, name, deleted }) => [
            brokerId,
            kind,
            name,
            deleted ? 'deleted' : '',
          ])
          output.line(table(['broker', 'kind', 'name', ''], rows, output.paint))
        }
        if (output.json) output.document({ orphans: found })
        if (found.some(({ deleted }) => !deleted)) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    notes: `They were left behind by a store that was lost or restored from an old backup, or another Keymesh works on the same
message VPN: then deleting them takes its clients away. No sweep ever deletes them; \`keymesh adopt\` takes one over.`,
    examples: [
      'keymesh orphans --broker broker-eu',
      'keymesh orphans --broker broker-eu --delete --kind queue --name keymesh-5nucimuldvklq2ijsw6el4juxa',
    ],
    exit: { 0: 'none are left', 1: 'there are some, or a broker could not be read' },
  })
}

/** Throws InvalidInputError when it is not said clearly what is to be deleted. */
function deletionOf({ broker, kind, name, all }: OrphansOptions): OrphanDeletion {
  if (broker === undefined) throw refused('--broker', 'must be given with --delete')
  if (all === true) return { brokerId: broker, only: null }
  if (kind === undefined || name === undefined) {
    throw refused('--delete', 'needs --kind and --name, or --all for every one that the list shows')
  }
  if (!OBJECT_KINDS.some((known) => known === kind)) {
    throw refused('--kind', `must be one of ${OBJECT_KINDS.join(', ')}`)
  }
  return { brokerId: broker, only: { kind, name } }
}

const refused = (path: string, message: string) => new InvalidInputError('The command line', [{ path, message }])
