import type { AttributeChange, ImportChange, ImportKind } from '../store/import-changes.ts'
import type { Output } from './output.ts'

const KIND_NAMES: Readonly<Record<ImportKind, string>> = {
  environment: 'environment',
  eventMesh: 'event mesh',
  applicationDomain: 'application domain',
  broker: 'broker',
  eventApi: 'Event API',
  product: 'product',
  productVersion: 'product version',
  registration: 'registration',
  accessRequest: 'access request',
  credential: 'credential',
}

const SIGNS: Readonly<Record<ImportChange['type'], string>> = { create: '+', update: '~', delete: '-' }

/** Of one kind and type; the rest is counted. */
const SHOWN_CHANGES = 20
const SHOWN_VALUE_LENGTH = 60

/** One line per object with `+`, `~` or `-`, and one per attribute of what is updated. */
export function renderChanges(changes: readonly ImportChange[]): readonly string[] {
  const lines: string[] = []
  const counts = new Map<string, number>()
  for (const [index, change] of changes.entries()) {
    const group = groupOf(change)
    const count = (counts.get(group) ?? 0) + 1
    counts.set(group, count)
    if (count <= SHOWN_CHANGES) lines.push(...changeLines(change))
    const next = changes[index + 1]
    const isLastOfRun = next === undefined || next.kind !== change.kind
    if (!isLastOfRun) continue
    for (const type of ['create', 'update', 'delete'] as const) {
      const hidden = (counts.get(groupOf({ type, kind: change.kind })) ?? 0) - SHOWN_CHANGES
      if (hidden > 0) lines.push(`${SIGNS[type]} … ${hidden} more of kind ${KIND_NAMES[change.kind]}`)
      counts.delete(groupOf({ type, kind: change.kind }))
    }
  }
  return lines
}

const groupOf = ({ type, kind }: Pick<ImportChange, 'type' | 'kind'>): string => `${type} ${kind}`

function changeLines({ type, kind, id, attributes }: ImportChange): readonly string[] {
  const head = `${SIGNS[type]} ${KIND_NAMES[kind]} ${id}`
  return type === 'create' ? [head] : [head, ...attributes.map(attributeLine)]
}

function attributeLine({ name, before, after }: AttributeChange): string {
  return before === undefined && after === undefined
    ? `    ${name} changed`
    : `    ${name}: ${show(before)} -> ${show(after)}`
}

function show(value: unknown): string {
  if (value === undefined || value === null) return 'none'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length <= SHOWN_VALUE_LENGTH ? text : `${text.slice(0, SHOWN_VALUE_LENGTH)}…`
}

export interface ImportOutcome {
  readonly dryRun: boolean
  /** How many registrations are to be reconciled. */
  readonly raised: number
  /** What the store holds when there is nothing to do. */
  readonly same?: string
}

/** The changes, coloured, and what became of them. */
export function printChanges(changes: readonly ImportChange[], outcome: ImportOutcome, output: Output): void {
  for (const line of renderChanges(changes)) {
    const [sign] = line
    if (sign === '+') output.line(output.paint.green(line))
    else if (sign === '-') output.line(output.paint.red(line))
    else output.line(line)
  }
  output.line(renderSummary(changes, outcome))
}

export function renderSummary(
  changes: readonly ImportChange[],
  { dryRun, raised, same = 'the file says' }: ImportOutcome,
): string {
  if (changes.length === 0) return `Nothing to do: the store holds what ${same}.`
  const count = (type: ImportChange['type']): number => changes.filter((change) => change.type === type).length
  const counts = `${count('create')} to create, ${count('update')} to update, ${count('delete')} to remove`
  if (dryRun) return `${counts}. Nothing was written.`
  const done = `${count('create')} created, ${count('update')} updated, ${count('delete')} removed`
  return `${done}. ${raised} registration${raised === 1 ? '' : 's'} to reconcile.`
}
