import { type RawBuilder, sql } from 'kysely'
import { parseWhere, type WhereComparison, type WhereExpression, whereProblem } from './where-expression.ts'

/**
 * What a selector may name. `number`: compared as an integer. `version`: a semantic version, ordered by precedence.
 * `text` is ordered by code points and is case-sensitive.
 */
export type WhereField = 'text' | 'number' | 'version' | WhereObject | WhereArray
export type WhereFields = Readonly<Record<string, WhereField>>
export interface WhereObject {
  readonly object: WhereFields
}
export interface WhereArray {
  /** `text`: an array of strings; fields: an array of objects. */
  readonly array: 'text' | WhereFields
}

/** A resource that can be filtered: a jsonb expression of the surrounding query, and what it holds. */
export interface WhereResource {
  /** For a person: `an Event API Product`. */
  readonly name: string
  readonly document: RawBuilder<unknown>
  readonly fields: WhereFields
  /** Other names of first-level fields. */
  readonly aliases?: Readonly<Record<string, string>>
}

/**
 * An RSQL expression as SQL; every value is a bound parameter, and the result is never null.
 * - `*` in a value of `==`, `!=`, `=in=`, `=out=` stands for any text, also none
 * - a condition on an array holds when one element fits; `!=` and `=out=` are the opposite of `==` and `=in=`: no element
 * - inside parentheses, conditions joined by `;` on the same array of objects speak of one and the same element
 *
 * Throws InvalidInputError with the path `where` for whatever is no expression over the resource.
 */
export function compileWhere(text: string, resource: WhereResource): RawBuilder<boolean> {
  const expression = parseWhere(text)
  const problems: string[] = []
  const resolved = resolve(expression, resource, problems)
  if (resolved === null || problems.length > 0) throw whereProblem(...new Set(problems))
  return new Compiler(resource.document).compile(resolved, new Map())
}

interface Step {
  readonly name: string
  /** `element`: into each object of an array; `item`: into each text of an array. */
  readonly into: 'field' | 'element' | 'item'
}

interface ResolvedComparison extends WhereComparison {
  readonly steps: readonly Step[]
  readonly type: 'text' | 'number' | 'version'
  /** Paths of the arrays of objects that the selector goes through, outermost first. */
  readonly arrays: readonly string[]
}

type Resolved =
  | ResolvedComparison
  | { readonly kind: 'or'; readonly items: readonly Resolved[] }
  | {
      readonly kind: 'and'
      readonly items: readonly Resolved[]
      readonly elements: 'independent' | 'inherited' | 'own'
    }

function resolve(expression: WhereExpression, resource: WhereResource, problems: string[]): Resolved | null {
  if (expression.kind === 'comparison') return resolveComparison(expression, resource, problems)
  const items = expression.items.flatMap((item) => resolve(item, resource, problems) ?? [])
  return { ...expression, items }
}

function resolveComparison(
  comparison: WhereComparison,
  resource: WhereResource,
  problems: string[],
): ResolvedComparison | null {
  const [first = '', ...others] = comparison.selector.split('.')
  const aliases = resource.aliases ?? {}
  const names = [Object.hasOwn(aliases, first) ? (aliases[first] ?? first) : first, ...others]
  const steps: Step[] = []
  const arrays: string[] = []
  let field: WhereField = { object: resource.fields }
  for (const [position, name] of names.entries()) {
    const fields: WhereFields | null = fieldsOf(field)
    const next: WhereField | undefined = fields !== null && Object.hasOwn(fields, name) ? fields[name] : undefined
    if (next === undefined) {
      problems.push(`${comparison.selector} is no field of ${resource.name}`)
      return null
    }
    const into = typeof next === 'object' && 'array' in next ? (next.array === 'text' ? 'item' : 'element') : 'field'
    steps.push({ name, into })
    if (into === 'element') arrays.push(names.slice(0, position + 1).join('.'))
    field = next
  }
  const type = leafType(field)
  if (type === null) {
    problems.push(`${comparison.selector} has fields of its own; name one of them`)
    return null
  }
  const problem = valueProblem(comparison, type)
  if (problem !== null) problems.push(problem)
  return { ...comparison, steps, arrays, type }
}

function fieldsOf(field: WhereField): WhereFields | null {
  if (typeof field === 'string') return null
  if ('object' in field) return field.object
  return field.array === 'text' ? null : field.array
}

function leafType(field: WhereField): 'text' | 'number' | 'version' | null {
  if (typeof field === 'string') return field
  return 'array' in field && field.array === 'text' ? 'text' : null
}

const INTEGER = /^-?\d{1,18}$/
const VERSION = /^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/

function valueProblem({ selector, operator, values }: WhereComparison, type: 'text' | 'number' | 'version') {
  const orders = operator !== '==' && operator !== '!=' && operator !== 'in' && operator !== 'out'
  if (type === 'number' && !values.every((value) => INTEGER.test(value))) return `${selector} is compared with integers`
  if (type === 'version' && orders && !values.every((value) => VERSION.test(value))) {
    return `${selector} is ordered as semantic versions such as 1.2.0`
  }
  return null
}

/** Element expressions by the path of their array. */
type Bound = ReadonlyMap<string, RawBuilder<unknown>>

class Compiler {
  readonly #document: RawBuilder<unknown>
  #aliases = 0

  constructor(document: RawBuilder<unknown>) {
    this.#document = document
  }

  compile(expression: Resolved, bound: Bound): RawBuilder<boolean> {
    switch (expression.kind) {
      case 'comparison':
        return this.#comparison(expression, bound)
      case 'or':
        return joined(
          expression.items.map((item) => this.compile(item, bound)),
          sql` or `,
        )
      case 'and':
        return this.#conjunction(expression, bound)
      default: {
        const unreachable: never = expression
        return unreachable
      }
    }
  }

  #conjunction(expression: Extract<Resolved, { readonly kind: 'and' }>, outer: Bound): RawBuilder<boolean> {
    const inherited: Bound = expression.elements === 'own' ? new Map() : outer
    const shared = expression.elements === 'independent' ? [] : sharedArrays(expression.items)
    const open = shared.filter((path) => !inherited.has(path))
    return this.#withElements(open, inherited, (bound) =>
      joined(
        expression.items.map((item) => this.compile(item, bound)),
        sql` and `,
      ),
    )
  }

  /** One element of each array, outer arrays first. */
  #withElements(
    paths: readonly string[],
    bound: Bound,
    condition: (bound: Bound) => RawBuilder<boolean>,
  ): RawBuilder<boolean> {
    const [path, ...others] = paths
    if (path === undefined) return condition(bound)
    const { from, rest } = this.#nearest(path.split('.'), bound)
    const [alias, element] = this.#element()
    const inner = this.#withElements(others, new Map(bound).set(path, element), condition)
    return sql`exists (select from jsonb_array_elements(${member(from, rest)}) as ${alias} where ${inner})`
  }

  #comparison(comparison: ResolvedComparison, bound: Bound): RawBuilder<boolean> {
    const names = comparison.steps.map(({ name }) => name)
    const { from, rest } = this.#nearest(names, bound)
    const positive = this.#reach(from, comparison.steps.slice(names.length - rest.length), comparison)
    return comparison.operator === '!=' || comparison.operator === 'out' ? sql`not ${positive}` : positive
  }

  #reach(from: RawBuilder<unknown>, steps: readonly Step[], comparison: ResolvedComparison): RawBuilder<boolean> {
    const [step, ...others] = steps
    if (step === undefined) return sql`false`
    if (step.into === 'field') {
      return others.length === 0
        ? matches(sql<string>`(${from} ->> ${sql.lit(step.name)})`, comparison)
        : this.#reach(member(from, [step.name]), others, comparison)
    }
    const [alias, element] = this.#element()
    const isItem = step.into === 'item'
    const rows = isItem ? sql`jsonb_array_elements_text` : sql`jsonb_array_elements`
    const inner = isItem ? matches(sql<string>`${element}`, comparison) : this.#reach(element, others, comparison)
    return sql`exists (select from ${rows}(${member(from, [step.name])}) as ${alias} where ${inner})`
  }

  /** The innermost bound element on the way, and the names that are left from there. */
  #nearest(names: readonly string[], bound: Bound) {
    for (let length = names.length - 1; length > 0; length -= 1) {
      const element = bound.get(names.slice(0, length).join('.'))
      if (element !== undefined) return { from: element, rest: names.slice(length) }
    }
    return { from: this.#document, rest: names }
  }

  #element(): readonly [alias: RawBuilder<unknown>, element: RawBuilder<unknown>] {
    this.#aliases += 1
    const name = `element_${this.#aliases}`
    return [sql`${sql.id(name)}(value)`, sql`${sql.ref(`${name}.value`)}`]
  }
}

const member = (from: RawBuilder<unknown>, names: readonly string[]): RawBuilder<unknown> =>
  names.reduce<RawBuilder<unknown>>((expression, name) => sql`(${expression} -> ${sql.lit(name)})`, from)

/** Arrays that two items or more speak of, one of them in any case: then the conjunction needs an element. */
function sharedArrays(items: readonly Resolved[]): readonly string[] {
  const paths = new Set(items.flatMap((item) => [...mentioned(item)]))
  return [...paths]
    .filter((path) => items.filter((item) => mentioned(item).has(path)).length > 1)
    .filter((path) => items.some((item) => requires(item, path)))
    .sort((one, other) => one.split('.').length - other.split('.').length)
}

/** Parentheses with a conjunction of their own speak of other elements. */
function mentioned(expression: Resolved): ReadonlySet<string> {
  if (expression.kind === 'comparison') return new Set(expression.arrays)
  if (expression.kind === 'and' && expression.elements === 'own') return new Set()
  return new Set(expression.items.flatMap((item) => [...mentioned(item)]))
}

function requires(expression: Resolved, path: string): boolean {
  if (expression.kind === 'comparison') return expression.arrays.includes(path)
  if (expression.kind === 'or') return expression.items.every((item) => requires(item, path))
  return expression.elements !== 'own' && expression.items.some((item) => requires(item, path))
}

function matches(value: RawBuilder<string>, { operator, values, type }: ResolvedComparison): RawBuilder<boolean> {
  const [first = ''] = values
  switch (operator) {
    case '==':
    case '!=':
    case 'in':
    case 'out':
      return sql`coalesce(${joined(
        values.map((each) => equals(value, each, type)),
        sql` or `,
      )}, false)`
    case '>':
    case '>=':
    case '<':
    case '<=':
      return sql`coalesce(${orderedBy(value, type)} ${sql.raw(operator)} ${orderedBy(sql<string>`${first}::text`, type)}, false)`
    default: {
      const unreachable: never = operator
      return unreachable
    }
  }
}

function equals(value: RawBuilder<string>, wanted: string, type: ResolvedComparison['type']): RawBuilder<boolean> {
  if (type === 'number') return sql`${value}::numeric = ${wanted}::numeric`
  if (!wanted.includes('*')) return sql`${value} = ${wanted}::text`
  const pattern = wanted.replace(/[\\%_]/g, '\\$&').replace(/\*+/g, '%')
  return sql`${value} like ${pattern}::text`
}

/** Text of a document as what it is ordered by; also for `order by`. */
export function orderedBy(value: RawBuilder<string>, type: ResolvedComparison['type']): RawBuilder<unknown> {
  if (type === 'number') return sql`${value}::numeric`
  return type === 'version' ? sql`semantic_version_key(${value})` : sql`${value} collate "C"`
}

const joined = (items: readonly RawBuilder<boolean>[], separator: RawBuilder<unknown>): RawBuilder<boolean> =>
  sql`(${sql.join(items, separator)})`
