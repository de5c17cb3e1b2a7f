import type { Value, Values } from './attribute.ts'
import type { ObjectTable } from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'

type Test = (value: Value | undefined) => boolean
interface Condition {
  readonly name: string
  readonly holds: Test
}
export type Filter = (values: Readonly<Values>, inherited: Readonly<Values>) => boolean

const CONDITION = /^([A-Za-z0-9.]+?)(==|!=|<=|>=|<|>)(.*)$/s

const invalid = (description: string) => new SempFailure('INVALID_PARAMETER', description)

/** A `where` value's wildcard pattern: `*` stands for any text, everything else for itself. */
function wildcardTest(pattern: string): (text: string) => boolean {
  if (!pattern.includes('*')) return (text) => text === pattern
  const parts = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, 's')
  return (text) => expression.test(text)
}

function valueTest(table: ObjectTable, name: string, operator: string, operand: string): Test {
  const attribute = table.attributes[name]
  if (attribute === undefined || attribute.writeOnly === true || attribute.type === 'threshold') {
    throw invalid(`"${name}" cannot be used in the where query parameter.`)
  }
  const isOrdering = operator !== '==' && operator !== '!='
  if (isOrdering && attribute.type !== 'integer') {
    throw invalid(`Operator "${operator}" of the where query parameter needs a number, but "${name}" is none.`)
  }
  const wanted = operator !== '!='
  switch (attribute.type) {
    case 'string': {
      const matches = wildcardTest(operand)
      return (value) => matches(String(value)) === wanted
    }
    case 'boolean': {
      if (operand !== 'true' && operand !== 'false') throw invalid(`"${name}" is true or false in the where query.`)
      return (value) => (value === (operand === 'true')) === wanted
    }
    case 'integer': {
      if (!/^-?\d+$/.test(operand)) throw invalid(`"${name}" needs a number in the where query parameter.`)
      return numberTest(operator, Number(operand))
    }
    default:
      return attribute satisfies never
  }
}

function numberTest(operator: string, operand: number): Test {
  switch (operator) {
    case '==':
      return (value) => value === operand
    case '!=':
      return (value) => value !== operand
    case '<':
      return (value) => typeof value === 'number' && value < operand
    case '>':
      return (value) => typeof value === 'number' && value > operand
    case '<=':
      return (value) => typeof value === 'number' && value <= operand
    default:
      return (value) => typeof value === 'number' && value >= operand
  }
}

/** `expressions` are the parts between the commas of `where`, decoded; all must hold. */
export function compileWhere(table: ObjectTable, expressions: readonly string[]): Filter {
  const conditions: Condition[] = expressions.map((expression) => {
    const [, name, operator, operand] = CONDITION.exec(expression) ?? []
    if (name === undefined || operator === undefined || operand === undefined) {
      throw invalid(`The where query parameter has an expression that is not understood: "${expression}".`)
    }
    return { name, holds: valueTest(table, name, operator, operand) }
  })
  return (values, inherited) =>
    conditions.every((condition) => condition.holds(values[condition.name] ?? inherited[condition.name]))
}
