import type { ThresholdValue, Value, Values } from './attribute.ts'
import type { ObjectTable } from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'

const MAXIMUM_NAMES = 256
const PARTS = ['clearPercent', 'clearValue', 'setPercent', 'setValue'] as const

/** What a response shows of an object: attribute names, and parts of thresholds where only some were asked for. */
export type Projection = (values: Readonly<Values>, inherited: Readonly<Values>) => Values

/** Every selectable name of a table; a threshold's parts are written with a dot. */
function selectableNames(names: readonly string[], table: ObjectTable | null): string[] {
  return names.flatMap((name) =>
    table?.attributes[name]?.type === 'threshold' ? PARTS.map((part) => `${name}.${part}`) : [name],
  )
}

function matcher(pattern: string): (name: string) => boolean {
  const expression = new RegExp(`^${pattern.replace(/[.]/g, '\\.').replaceAll('*', '.*')}(\\..*)?$`)
  return (name) => expression.test(name)
}

function projectionOf(names: readonly string[]): Projection {
  const whole = names.filter((name) => !name.includes('.'))
  const parts = names.filter((name) => name.includes('.')).map((name) => name.split('.') as [string, string])
  return (values, inherited) => {
    const shown: Values = {}
    for (const name of whole) {
      const value: Value | undefined = values[name] ?? inherited[name]
      if (value !== undefined) shown[name] = value
    }
    for (const [name, part] of parts) {
      const threshold = values[name]
      const value = typeof threshold === 'object' ? threshold[part as keyof ThresholdValue] : undefined
      if (value !== undefined) shown[name] = { ...(shown[name] as ThresholdValue | undefined), [part]: value }
    }
    return shown
  }
}

/** Everything readable, in the order of the table. */
export const wholeProjection = (readable: readonly string[]): Projection => projectionOf(readable)

/**
 * @param readable the names that a GET may return
 * @param all the names that may be asked for, write-only ones included
 */
export function compileSelect(
  readable: readonly string[],
  all: readonly string[],
  table: ObjectTable | null,
  items: readonly string[],
): Projection {
  if (items.length > MAXIMUM_NAMES) {
    throw new SempFailure('INVALID_PARAMETER', `The select query parameter has more than ${MAXIMUM_NAMES} names.`)
  }
  const selectable = selectableNames(all, table)
  const isReadable = new Set(selectableNames(readable, table))
  const isExcluding = (item: string) => item.startsWith('-')
  const firstExclusion = items.findIndex(isExcluding)
  if (firstExclusion >= 0 && items.slice(firstExclusion).some((item) => !isExcluding(item))) {
    throw new SempFailure('INVALID_PARAMETER', 'Exclusions must come last in the select query parameter.')
  }
  const chosen = new Set(firstExclusion === 0 ? selectable : [])
  for (const item of items) {
    const pattern = isExcluding(item) ? item.slice(1) : item
    const isWellFormed = /^[A-Za-z0-9*.]+$/.test(pattern)
    const matched = isWellFormed ? selectable.filter(matcher(pattern)) : []
    if (matched.length === 0) {
      throw new SempFailure('INVALID_PARAMETER', `The select query parameter matches no attribute: "${item}".`)
    }
    for (const name of matched) {
      if (isExcluding(item)) chosen.delete(name)
      else chosen.add(name)
    }
  }
  const shown = [...chosen].filter((name) => isReadable.has(name))
  return projectionOf(collapse(shown, readable, table))
}

/** A threshold of which every part is chosen is shown as it is. */
function collapse(shown: readonly string[], readable: readonly string[], table: ObjectTable | null): string[] {
  const names = new Set(shown)
  return readable.flatMap((name) => {
    const leaves = selectableNames([name], table)
    const present = leaves.filter((leaf) => names.has(leaf))
    return present.length === leaves.length ? [name] : present
  })
}
