import { Command } from 'commander'
import type { Context } from '../context.ts'
import { generateKey, keysInUse, type ResealReport, removeOldKey, rotateKeys } from '../key-rotation.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { type Output, table } from './output.ts'

export function keysCommand(dependencies: CommandDependencies): Command {
  const command = new Command('keys')
    .description('the key ring that seals secrets')
    .addCommand(generateCommand(dependencies))
    .addCommand(listCommand(dependencies))
    .addCommand(rotateCommand(dependencies))
    .addCommand(removeCommand(dependencies))
  return explained(command, {
    examples: ['keymesh keys list', 'keymesh keys rotate'],
    exit: { 0: 'done', 1: 'something needs attention or failed' },
  })
}

function generateCommand(dependencies: CommandDependencies): Command {
  const command = new Command('generate')
    .description('print a new key for KEYMESH_KEYS; it is written nowhere')
    .option('--json', 'print one JSON document')
    .action((_options: object, command: Command) => {
      const output = dependencies.output(command)
      const key = generateKey()
      output.line(key)
      if (output.json) output.document({ key })
    })
  return explained(command, {
    notes: `KEYMESH_KEYS holds one or more keys as ID:KEY,ID:KEY; the first seals, all of them open. Keep it as you keep a password,
give it to every replica, and back it up apart from the database: without it no stored secret can be opened.`,
    examples: ['keymesh keys generate'],
    exit: { 0: 'the key was printed', 1: 'never' },
  })
}

function listCommand(dependencies: CommandDependencies): Command {
  const command = new Command('list')
    .description('show each key and how many secrets it seals')
    .option('--json', 'print one JSON document per key')
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
  return explained(command, {
    examples: ['keymesh keys list'],
    exit: {
      0: 'the ring has every key that is needed',
      1: 'a secret is sealed with a key that the ring lacks, or something failed',
    },
  })
}

function rotateCommand(dependencies: CommandDependencies): Command {
  const command = new Command('rotate')
    .description('seal every secret with a new key while the service runs')
    .option('--json', 'print one JSON document')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const report = await dependencies.withContext((context: Context) =>
        rotateKeys(context, {
          signal: dependencies.signal,
          onProgress: (resealed) => output.progress(`${resealed} secrets resealed`),
        }),
      )
      output.endProgress()
      printReport(report, output)
      if (!report.complete) dependencies.exitWith(1)
    })
  return explained(command, {
    notes: `With a key ring file a new key is made and promoted; with KEYMESH_KEYS the current key of that ring is used, so add the
new key at the end on every replica first, then put it first. Old keys stay in the ring and only open: keymesh keys remove.`,
    examples: ['keymesh keys rotate', 'keymesh keys rotate --json'],
    exit: { 0: 'every secret is sealed with the current key', 1: 'some could not be resealed, or something failed' },
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
  const command = new Command('remove')
    .description('take a key that seals nothing any more out of the key ring file')
    .argument('<kid>', 'the id of the key')
    .option('--json', 'print one JSON document')
    .action(async (kid: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext((context) => removeOldKey(context, kid))
      if (output.json) output.document({ removed: kid })
      else output.line(`Key ${kid} is out of the key ring.`)
    })
  return explained(command, {
    examples: ['keymesh keys remove k-2026-01'],
    exit: {
      0: 'removed',
      1: 'refused, as it still seals something or is the current one',
      2: 'there is no such key, or wrong input',
    },
  })
}
