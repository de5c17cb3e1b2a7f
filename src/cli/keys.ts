import { Command } from 'commander'
import type { Context } from '../context.ts'
import { generateKey, keysInUse, type ResealReport, removeOldKey, rotateKeys } from '../key-rotation.ts'
import type { CommandDependencies } from './command.ts'
import { type Output, table } from './output.ts'

export function keysCommand(dependencies: CommandDependencies): Command {
  return new Command('keys')
    .description('the key ring that seals secrets')
    .addCommand(generateCommand(dependencies))
    .addCommand(listCommand(dependencies))
    .addCommand(rotateCommand(dependencies))
    .addCommand(removeCommand(dependencies))
}

function generateCommand(dependencies: CommandDependencies): Command {
  return new Command('generate')
    .description('print a new key for KEYMESH_KEYS; it is written nowhere')
    .addHelpText(
      'after',
      `
KEYMESH_KEYS holds one or more keys as ID:KEY,ID:KEY; the first seals, all of them open. Keep it as you keep a password,
give it to every replica, and back it up apart from the database: without it no stored secret can be opened.
Exit status: 0.`,
    )
    .action((_options: object, command: Command) => {
      dependencies.output(command).line(generateKey())
    })
}

function listCommand(dependencies: CommandDependencies): Command {
  return new Command('list')
    .description('show each key and how many secrets it seals')
    .option('--json', 'print one JSON document per key')
    .addHelpText('after', '\nExit status: 0; 1 when a secret is sealed with a key that the ring lacks.')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const keys = await dependencies.withContext(keysInUse)
      if (output.json) for (const key of keys) output.document(key)
      else {
        const rows = keys.map(({ kid, role, secrets }) => [kid, role, String(secrets)])
        output.line(table(['key', 'role', 'secrets'], rows, output.paint))
      }
      if (keys.some(({ role }) => role === 'missing')) dependencies.exitWith(1)
    })
}

function rotateCommand(dependencies: CommandDependencies): Command {
  return new Command('rotate')
    .description('seal every secret with a new key while the service runs')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
With a key ring file a new key is made and promoted; with KEYMESH_KEYS the current key of that ring is used, so add the
new key at the end on every replica first, then put it first. Old keys stay in the ring and only open: keymesh keys remove.
Exit status: 0 every secret is sealed with the current key, 1 some could not be resealed, 2 bad input.`,
    )
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const report = await dependencies.withContext((context: Context) =>
        rotateKeys(context, {
          signal: dependencies.signal,
          onProgress: (resealed) => output.progress(`${resealed} secrets resealed`),
        }),
      )
      printReport(report, output)
      if (!report.complete) dependencies.exitWith(1)
    })
}

function printReport(report: ResealReport, output: Output): void {
  if (output.json) {
    output.document(report)
    return
  }
  const { kid, resealed, unreadable, unreadableCount, oldKids, complete } = report
  output.line(`${resealed} secrets resealed with key ${kid}.`)
  for (const { place, code } of unreadable) {
    output.line(output.paint.red(`  ${place.table} ${place.rowId} (account ${place.accountId}): ${code}`))
  }
  if (unreadableCount > unreadable.length) output.line(`  and ${unreadableCount - unreadable.length} more`)
  if (!complete) output.line('Some secrets are under another key still; keep every key and run this again.')
  else if (oldKids.length > 0) output.line(`No secret needs the keys ${oldKids.join(', ')} any more.`)
}

function removeCommand(dependencies: CommandDependencies): Command {
  return new Command('remove')
    .description('take a key that seals nothing any more out of the key ring file')
    .argument('<kid>', 'the id of the key')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExit status: 0 removed, 1 refused, 2 there is no such key.')
    .action(async (kid: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext((context) => removeOldKey(context, kid))
      if (output.json) output.document({ removed: kid })
      else output.line(`Key ${kid} is out of the key ring.`)
    })
}
