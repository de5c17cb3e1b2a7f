import { Command } from 'commander'
import { readEnv, toConfig } from '../config.ts'
import type { RestoreReport } from '../restore.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { passphraseFrom } from './options.ts'
import type { Output } from './output.ts'

interface RestoreOptions {
  readonly passphraseEnv?: string
  readonly check?: boolean
  readonly showKeys?: boolean
}

export function restoreCommand(dependencies: CommandDependencies): Command {
  const command = new Command('restore')
    .description('restore a backup into an empty database')
    .argument('<file>', 'what keymesh backup wrote')
    .option('--passphrase-env <name>', 'the environment variable with the passphrase of the key ring in the backup')
    .option('--check', 'only read the file to its end and say what is in it')
    .option('--show-keys', 'only print the key ring in it, as KEYMESH_KEYS takes it')
    .option('--json', 'print one JSON document')
    .action(async (path: string, options: RestoreOptions, command: Command) => {
      const output = dependencies.output(command)
      if (options.check === true) {
        await check(path, output)
        return
      }
      const { restore, shownKeyRing } = await import('../restore.ts')
      const config = toConfig(readEnv())
      const passphrase = passphraseFrom(config, options.passphraseEnv)
      if (options.showKeys === true) {
        const keys = (await shownKeyRing(path, passphrase)).reveal()
        output.line(keys)
        if (output.json) output.document({ keys })
        return
      }
      const report = await restore(config, path, passphrase)
      if (output.json) output.document({ file: path, ...report })
      else print(path, report, output)
    })
  return explained(command, {
    notes: `All or nothing: the file is read to its end first, and nothing is written when it is damaged, when there is a store already,
or when a secret in it does not open. The key ring is that of KEYMESH_KEYS, else keys.json in the data directory, else the
one in the backup. Stop the old service for good before: two must never work on the same brokers.
The brokers went on after the backup was made, so every account is paused: look at the plan, then keymesh resume --account.`,
    examples: [
      'keymesh restore keymesh-monday.backup --check',
      'KEYMESH_DATA_DIR=./new keymesh restore full.backup --passphrase-env BACKUP_PASSPHRASE',
    ],
    exit: {
      0: 'restored, or whole',
      1: 'refused or failed, and nothing was written',
      2: 'wrong command line or settings',
    },
  })
}

async function check(path: string, output: Output): Promise<void> {
  const { checkBackup } = await import('../backup.ts')
  const { header: _, ...summary } = await checkBackup(path)
  if (output.json) output.document({ file: path, ...summary })
  const { createdAt, rows, tables, schemaVersion, sealedWith, holdsKeyRing } = summary
  output.line(`${path} is whole: ${rows} rows of ${tables} tables, made ${createdAt} (schema ${schemaVersion}).`)
  if (sealedWith.length > 0) output.line(`Its secrets are sealed with ${sealedWith.join(', ')}.`)
  output.line(holdsKeyRing ? 'The key ring is in it, sealed with a passphrase.' : 'The key ring is not in it.')
}

function print(path: string, report: RestoreReport, output: Output): void {
  const { rows, tables, createdAt, secrets, keyRingFile } = report
  output.line(
    `${rows} rows of ${tables} tables of ${createdAt} are restored from ${path}; all ${secrets} secrets open.`,
  )
  if (keyRingFile !== null) output.line(`The key ring of the backup is in ${keyRingFile}.`)
  output.line(
    output.paint.yellow(
      'Every account is paused. The brokers may be ahead of this store: look at `keymesh plan` first,',
    ),
  )
  output.line(output.paint.yellow('then let it go on with `keymesh resume --account`.'))
}
