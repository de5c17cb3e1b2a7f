import { Command } from 'commander'
import { InvalidInputError, problemLine } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { ImportOptions } from '../store/import-portal-file.ts'
import { cryptoRandom } from '../store/random-source.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { printChanges } from './import-changes.ts'
import { parseDeletions } from './options.ts'

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
      const importOptions: ImportOptions = {
        dryRun,
        prune: options.prune === true,
        ...(options.yesPrune === undefined ? {} : { confirmedDeletions: options.yesPrune }),
      }
      const { file, changes, raised } = await dependencies.withContext(async (context) => {
        const { db, sealer, accountId, config } = context
        const { parsePortalFile } = await import('../portal-file/parse-portal-file.ts')
        const { importPortalFile } = await import('../store/import-portal-file.ts')
        output.progress(`reading ${path}`)
        const file = await parsePortalFile(path, { env: (name) => config.secretFromEnvironment(name)?.reveal() })
        const importing = { db, sealer, random: cryptoRandom, nowMs: context.now }
        output.progress(`${dryRun ? 'comparing' : 'writing'} ${describeSize(file)}`)
        return { file, ...(await importPortalFile(importing, accountId, file, importOptions)) }
      })
      output.endProgress()
      if (output.json) output.document({ file: path, dryRun, changes, warnings: file.warnings, raised })
      else {
        for (const warning of file.warnings) output.line(output.paint.yellow(`warning: ${problemLine(warning)}`))
        printChanges(changes, { dryRun, raised: raised.length }, output)
      }
    })
  return explained(command, {
    notes: `All or nothing: with any problem in the file nothing is written. Registrations that the change reaches are reconciled by
the running service.`,
    examples: ['keymesh import portal.yaml --dry-run', 'keymesh import portal.yaml --prune --yes-prune 12'],
    exit: {
      0: 'done, or nothing to do',
      1: 'a prune was stopped, or something failed',
      2: 'the file has problems, or wrong input; nothing was written',
    },
  })
}

const describeSize = ({ brokers, eventApis, products, registrations }: PortalFile): string =>
  `${brokers.length} brokers, ${eventApis.length} Event APIs, ${products.length} products, ${registrations.length} registrations`
