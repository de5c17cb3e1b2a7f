import { Command } from 'commander'
import type { BackupSummary } from '../backup.ts'
import type { Context } from '../context.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { passphraseFrom } from './options.ts'
import type { Output } from './output.ts'

interface BackupOptions {
  readonly passphraseEnv?: string
}

export function backupCommand(dependencies: CommandDependencies): Command {
  const command = new Command('backup')
    .description('write the whole store into a file, while the service runs')
    .argument('<file>', 'a new file; only its owner may read it')
    .option(
      '--passphrase-env <name>',
      'put the key ring in, too, sealed with the passphrase in this environment variable',
    )
    .option('--json', 'print one JSON document')
    .action(async (path: string, options: BackupOptions, command: Command) => {
      const output = dependencies.output(command)
      const { backUp } = await import('../backup.ts')
      await dependencies.withContext(async (context) => {
        const summary = await backUp(context, path, passphraseFrom(context.config, options.passphraseEnv))
        if (output.json) output.document({ file: path, ...summary })
        else print(path, summary, context, output)
      })
    })
  return explained(command, {
    notes: `One snapshot of every account, in a form of its own: it goes back into a PostgreSQL of any version that Keymesh runs on.
The queue is not in it, nor what is on the brokers. Secrets stay sealed; without their key ring nobody opens them.
Keep the file as you keep a password: it holds password digests, names and sealed secrets.`,
    examples: ['keymesh backup keymesh-monday.backup', 'keymesh backup full.backup --passphrase-env BACKUP_PASSPHRASE'],
    exit: { 0: 'the backup is complete', 1: 'it could not be made, and there is no file' },
  })
}

function print(path: string, summary: BackupSummary, { keyRingFile }: Context, output: Output): void {
  const { rows, tables, schemaVersion, sealedWith, holdsKeyRing } = summary
  output.line(`${rows} rows of ${tables} tables are in ${path} (schema ${schemaVersion}).`)
  if (holdsKeyRing) output.line('The key ring is in it, sealed with the passphrase: keep that apart from the file.')
  else if (sealedWith.length > 0) {
    const where = keyRingFile ?? 'KEYMESH_KEYS'
    output.line(
      output.paint.yellow(
        `The key ring is NOT in it. Without the key ${sealedWith.join(', ')} nobody opens its secrets: keep ${where} as well.`,
      ),
    )
  }
}
