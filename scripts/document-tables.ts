import type { Command } from 'commander'
import { helpOf } from '../src/cli/help.ts'
import { createOutput } from '../src/cli/output.ts'
import { createProgram } from '../src/cli/program.ts'
import { pathOf, worksRemotely } from '../src/cli/service-option.ts'
import { settings } from '../src/config.ts'
import { LOG_EVENTS } from '../src/observability/log-events.ts'
import { metricDefinitions } from '../src/observability/metric-definitions.ts'
import { CLIENT_PROFILES } from '../src/reconcile/client-profiles.ts'

/** Tables of the documents that the code holds: where each stands, and what it has to say. */
export interface DocumentTable {
  /** Path from the root of the repository. */
  readonly document: string
  /** Between `<!-- table: NAME -->` and `<!-- end of table -->`. */
  readonly name: string
  render(): string
}

export const DOCUMENT_TABLES: readonly DocumentTable[] = [
  { document: 'docs/configuration.md', name: 'settings', render: settingsTable },
  { document: 'docs/command-line.md', name: 'commands', render: commandsTable },
  { document: 'docs/client-profiles.md', name: 'client profiles', render: clientProfilesTable },
  { document: 'docs/metrics.md', name: 'metrics', render: metricsTable },
  { document: 'docs/operations.md', name: 'log events', render: logEventsTable },
]

function commandsTable(): string {
  const nowhere = { write: () => true }
  const program = createProgram(
    {
      withContext: () => Promise.reject(new Error('a table runs no command')),
      output: () => createOutput({ out: nowhere, err: nowhere }, { json: true }),
      exitWith: () => undefined,
      signal: new AbortController().signal,
    },
    { out: nowhere, err: nowhere },
  )
  const rows = leavesOf(program)
    .filter((command) => command.name() !== 'complete')
    .map((command) => {
      const exit = helpOf(command)?.exit
      const words = [pathOf(command), ...command.registeredArguments.map((each) => each.name().toUpperCase())]
      const remotely = yesOrNo(worksRemotely(command))
      return [`\`keymesh ${words.join(' ')}\``, command.description(), remotely, exit?.[0] ?? '', exit?.[1] ?? '']
    })
  return markdownTable(['Command', 'What it does', 'On a service', 'Exit status 0', 'Exit status 1'], rows)
}

const leavesOf = (command: Command): readonly Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf)

function metricsTable(): string {
  const rows = metricDefinitions.map(({ name, type, labels, from, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    from === 'store' ? 'same in all' : 'each its own',
    help,
  ])
  return markdownTable(['Name', 'Type', 'Labels', 'Processes', 'Meaning'], rows)
}

function logEventsTable(): string {
  const rows = Object.entries(LOG_EVENTS).map(([event, meaning]) => [`\`${event}\``, meaning])
  return markdownTable(['Event', 'Meaning'], rows)
}

function settingsTable(): string {
  const rows = settings.map(({ name, description, default: fallback }) => [
    `\`${name}\``,
    description,
    fallback === null ? 'none' : `\`${fallback}\``,
  ])
  return markdownTable(['Name', 'Meaning', 'Default'], rows)
}

function clientProfilesTable(): string {
  const rows = CLIENT_PROFILES.map((profile) => [
    `\`${profile.name}\``,
    ...[profile.guaranteedSend, profile.guaranteedReceive, profile.endpointCreation, profile.transacted].map(yesOrNo),
  ])
  return markdownTable(['Name', 'Guaranteed send', 'Guaranteed receive', 'Endpoint creation', 'Transacted'], rows)
}

const yesOrNo = (value: boolean): string => (value ? 'yes' : 'no')

function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const END = '<!-- end of table -->'

/** The document's text with the table in its place. Throws when the document has no place for it. */
export function withTable(text: string, { name, render }: Pick<DocumentTable, 'name' | 'render'>): string {
  const begin = `<!-- table: ${name} -->`
  const from = text.indexOf(begin)
  const to = text.indexOf(END, from)
  if (from < 0 || to < 0) throw new Error(`the document has no place for the table of ${name}`)
  return `${text.slice(0, from)}${begin}\n\n${render()}\n\n${text.slice(to)}`
}
