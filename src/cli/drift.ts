import { Command } from 'commander'
import type { DriftView } from '../store/drift-view.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { chosen, type PlaceOptions, parseCount } from './options.ts'
import { type Output, table } from './output.ts'
import { onStoreOrService } from './service-option.ts'

interface DriftOptions extends PlaceOptions {
  readonly open?: boolean
  readonly limit: number
}

export function driftCommand(dependencies: CommandDependencies): Command {
  const command = new Command('drift')
    .description('list the differences that were found on brokers, newest first')
    .option('--broker <id>', 'only on this broker')
    .option('--registration <id>', 'only of this registration')
    .option('--open', 'only what is not repaired')
    .option('--limit <count>', 'at most so many', parseCount, 50)
    .option('--json', 'print one JSON document per difference')
    .action(async (options: DriftOptions, command: Command) => {
      const output = dependencies.output(command)
      const { open: openOnly = false, limit } = options
      await operate(dependencies, command, async (operations) => {
        const rows = await operations.drift({ ...chosen(options), openOnly, limit })
        if (output.json) for (const row of rows) output.document(row)
        else if (rows.length === 0) output.line('No drift on record.')
        else output.line(driftTable(rows, output))
      })
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh drift --open', 'keymesh drift --broker broker-eu --limit 10 --json'],
    exit: { 0: 'the list was read, whatever it holds', 1: 'it could not be read' },
  })
}

export function driftTable(rows: readonly DriftView[], output: Output): string {
  const head = ['found', 'broker', 'registration', 'object', 'drift', 'what changed', 'outcome']
  return table(
    head,
    rows.map((row) => [
      new Date(row.detectedAtMs).toISOString().slice(0, 19).replace('T', ' '),
      row.brokerId,
      row.registrationId ?? 'shared',
      `${row.objectKind} ${row.objectName}`,
      row.kind,
      describeChange(row),
      row.repairedAtMs === null ? output.paint.yellow(`${row.action}: ${row.reason}`) : output.paint.green('repaired'),
    ]),
    output.paint,
  )
}

const SHOWN_CHANGES = 3

function describeChange({ kind, before, after }: DriftView): string {
  if (kind === 'missing') return 'the object was gone'
  const changes = Object.keys(after).map((name) => `${name}: ${show(before[name])} -> ${show(after[name])}`)
  const more = changes.length > SHOWN_CHANGES ? `, and ${changes.length - SHOWN_CHANGES} more` : ''
  return changes.slice(0, SHOWN_CHANGES).join(', ') + more
}

const show = (value: unknown): string => (Array.isArray(value) ? `[${value.join(' ')}]` : String(value ?? 'unset'))
