import { Command } from 'commander'
import { InvalidInputError, KeymeshError } from '../domain/errors.ts'
import type { UnmanagedBroker } from '../store/followed-catalogues.ts'
import { stopFollowing } from '../store/followed-catalogues.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { printChanges } from './import-changes.ts'
import { parseDeletions } from './options.ts'
import type { Output } from './output.ts'

interface PullCommandOptions {
  readonly dryRun?: boolean
  readonly documents?: boolean
  readonly yesPrune?: number
  readonly unfollow?: boolean
}

export function pullCommand(dependencies: CommandDependencies): Command {
  const command = new Command('pull')
    .description('read the catalogue and the registrations of another service once, as KEYMESH_APIM_URL says')
    .option('--dry-run', 'print the change and write nothing')
    .option('--documents', 'read every AsyncAPI document again, also those that look the same')
    .option('--yes-prune <count>', 'agree to removing much: the number of deletions', parseDeletions)
    .option('--unfollow', 'make the account its own again, with all that it has')
    .option('--json', 'print one JSON document')
    .action(async (options: PullCommandOptions, command: Command) => {
      const output = dependencies.output(command)
      if (options.unfollow === true) return await unfollow(dependencies, options, output)
      const dryRun = options.dryRun === true
      const result = await dependencies.withContext(async ({ remote }) => {
        if (remote === null) throw noRemote()
        output.progress('reading the other service')
        return await remote.pull({
          dryRun,
          confirmedDeletions: options.yesPrune,
          allDocuments: options.documents === true,
          signal: dependencies.signal,
        })
      })
      output.endProgress()
      const { changes, warnings, unmanagedBrokers, raised, superseded } = result
      if (output.json) return output.document({ dryRun, changes, warnings, unmanagedBrokers, raised, superseded })
      for (const warning of warnings) output.line(output.paint.yellow(`warning: ${warning}`))
      for (const broker of unmanagedBrokers) output.line(output.paint.yellow(unmanagedLine(broker)))
      if (superseded) output.line('The service read the catalogue meanwhile; nothing was written.')
      else printChanges(changes, { dryRun, raised: raised.length, same: 'the other service has' }, output)
    })
  return explained(command, {
    notes: `The service does the same by itself, as KEYMESH_APIM_POLL_CRON says. All or nothing: a pass that meets an error changes
nothing. Brokers, event meshes and environments are declared here by \`keymesh import\` and are never removed.
After --unfollow products and registrations can be changed here again; take KEYMESH_APIM_URL away first.`,
    examples: ['keymesh pull --dry-run', 'keymesh pull --yes-prune 40'],
    exit: { 0: 'done, or nothing to do', 1: 'the other service failed, or too much would be removed' },
  })
}

async function unfollow(dependencies: CommandDependencies, options: PullCommandOptions, output: Output): Promise<void> {
  if (options.dryRun === true || options.documents === true || options.yesPrune !== undefined) {
    throw new InvalidInputError('The command line', [{ path: '--unfollow', message: 'stands alone' }])
  }
  const done = await dependencies.withContext(({ db, accountId }) => stopFollowing(db, accountId))
  if (output.json) output.document({ unfollowed: done })
  else output.line(done ? 'The account is its own again.' : 'Nothing to do: the account is its own.')
}

export const unmanagedLine = ({ id, name }: UnmanagedBroker): string =>
  `broker ${id} (${name}) is not managed here: \`keymesh import\` a portal file that has it, with its management settings`

const noRemote = (): KeymeshError =>
  new KeymeshError({
    code: 'NO_REMOTE',
    fate: 'stop',
    message: 'There is no other service to read.',
    hint: 'Set KEYMESH_APIM_URL, and KEYMESH_APIM_TOKEN or KEYMESH_AUTH_URL with a user.',
  })
