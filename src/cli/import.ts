import { Command } from 'commander'
import { InvalidInputError, problemLine } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { ImportEvent, ImportOutcome } from '../operations/portal-import.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { printChanges } from './import-changes.ts'
import { operate } from './operate.ts'
import { parseDeletions } from './options.ts'
import { onStoreOrService } from './service-option.ts'

interface ImportCommandOptions {
  readonly dryRun?: boolean
  readonly prune?: boolean
  readonly yesPrune?: number
}

export function importCommand(dependencies: CommandDependencies): Command {
  const command = new Command('import')
    .description('bring the catalogue and its registrations in step with a portal file')
    .argument('<file>', 'a YAML file; the documents it names are found beside it')
    .option('--dry-run', 'print the change and write nothing')
    .option('--prune', 'also remove what the file does not hold; registrations that the API made stay')
    .option('--yes-prune <count>', 'agree to a prune that removes much: the number of deletions', parseDeletions)
    .option('--json', 'print one JSON document')
    .action(async (path: string, options: ImportCommandOptions, command: Command) => {
      const output = dependencies.output(command)
      if (options.yesPrune !== undefined && options.prune !== true) {
        throw new InvalidInputError('The command line', [{ path: '--yes-prune', message: 'needs --prune' }])
      }
      const dryRun = options.dryRun === true
      const { file, changes, raised } = await operate(dependencies, command, async (operations, _now, secretOf) => {
        const { readPortal } = await import('../portal-file/read-portal.ts')
        output.progress(`reading ${path}`)
        const portal = await readPortal(path, secretOf)
        output.progress(`${dryRun ? 'comparing' : 'writing'} ${describeSize(portal.file)}`)
        const request = {
          portal,
          dryRun,
          prune: options.prune === true,
          ...(options.yesPrune === undefined ? {} : { confirmedDeletions: options.yesPrune }),
        }
        const outcome = await lastOf(operations.importPortal(request, dependencies.signal))
        return { file: portal.file, ...outcome }
      })
      output.endProgress()
      if (output.json) output.document({ file: path, dryRun, changes, warnings: file.warnings, raised })
      else {
        for (const warning of file.warnings) output.line(output.paint.yellow(`warning: ${problemLine(warning)}`))
        printChanges(changes, { dryRun, raised: raised.length }, output)
      }
    })
  return explained(onStoreOrService(command), {
    notes: `All or nothing: with any problem in the file nothing is written. Registrations that the change reaches are reconciled by
the running service. On a service elsewhere the files and environment variables that the file names are still those of this host.`,
    examples: [
      'keymesh import portal.yaml --dry-run',
      'keymesh import portal.yaml --url https://keymesh.example.com',
      'keymesh import portal.yaml --prune --yes-prune 12',
    ],
    exit: {
      0: 'done, or nothing to do',
      1: 'a prune was stopped, or something failed',
      2: 'the file has problems, or wrong input; nothing was written',
    },
  })
}

async function lastOf(events: AsyncIterable<ImportEvent>): Promise<ImportOutcome> {
  for await (const event of events) if (event.type === 'done') return event
  throw new Error('an import ended without its outcome')
}

const describeSize = ({ brokers, eventApis, products, registrations }: PortalFile): string =>
  `${brokers.length} brokers, ${eventApis.length} Event APIs, ${products.length} products, ${registrations.length} registrations`
