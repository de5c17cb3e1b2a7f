import { Command } from 'commander'
import { OBJECT_KINDS, type ObjectRef } from '../domain/broker-object.ts'
import { InvalidInputError } from '../domain/errors.ts'
import type { CommandDependencies } from './command.ts'
import { table } from './output.ts'
import { selectBrokers } from './select.ts'

interface OrphansOptions {
  readonly broker?: string
  readonly delete?: boolean
  readonly kind?: string
  readonly name?: string
  readonly all?: boolean
}

export function orphansCommand(dependencies: CommandDependencies): Command {
  return new Command('orphans')
    .description('list broker objects that look like those of Keymesh and are not in its ledger')
    .option('--broker <id>', 'one broker; all when absent')
    .option('--delete', 'delete them; needs --broker, and --kind with --name, or --all')
    .option('--kind <kind>', OBJECT_KINDS.join(', '))
    .option('--name <name>', 'the name on the broker')
    .option('--all', 'with --delete: every one that the list shows')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
They were left behind by a store that was lost or restored from an old backup, or another Keymesh works on the same
message VPN: then deleting them takes its clients away. No sweep ever deletes them.
Examples:
  keymesh orphans --broker broker-eu
  keymesh orphans --broker broker-eu --delete --kind queue --name keymesh-5nucimuldvklq2ijsw6el4juxa
  keymesh adopt --broker broker-eu --kind clientUsername --name tracker-7   takes one over instead
Exit status: 0 none left, 1 there are some, 2 bad input.`,
    )
    .action(async (options: OrphansOptions, command: Command) => {
      const output = dependencies.output(command)
      const chosen = options.delete === true ? chosenBy(options) : null
      await dependencies.withContext(async (context) => {
        const found: { brokerId: string; kind: string; name: string; deleted: boolean }[] = []
        for (const broker of await selectBrokers(context, options.broker)) {
          const { brokerId } = broker
          const deleted = chosen === null ? [] : await context.engine.deleteOrphans(broker, chosen, dependencies.signal)
          const left = await context.engine.orphans(broker, dependencies.signal)
          found.push(...deleted.map(({ kind, name }) => ({ brokerId, kind, name, deleted: true })))
          found.push(...left.map(({ kind, name }) => ({ brokerId, kind, name, deleted: false })))
        }
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
}

/** Throws InvalidInputError when it is not said clearly what is to be deleted. */
function chosenBy({ broker, kind, name, all }: OrphansOptions): (orphan: ObjectRef) => boolean {
  if (broker === undefined) throw refused('--broker', 'must be given with --delete')
  if (all === true) return () => true
  if (kind === undefined || name === undefined) {
    throw refused('--delete', 'needs --kind and --name, or --all for every one that the list shows')
  }
  return (orphan) => orphan.kind === kind && orphan.name === name
}

const refused = (path: string, message: string) => new InvalidInputError('The command line', [{ path, message }])
