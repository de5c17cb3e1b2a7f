import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compareVersions } from '../../src/domain/semantic-version.ts'
import { type OpenDatabase, openDatabase } from '../../src/store/database.ts'
import { compileWhere, type WhereResource } from '../../src/store/where.ts'
import { withDatabase } from '../helpers/database.ts'

// The SQL of a filter is compared with what the filter means, said here in JavaScript.

const attributes = { array: { name: 'text', value: 'text' } } as const
const resource: WhereResource = {
  name: 'a thing',
  document: sql`document`,
  fields: {
    name: 'text',
    size: 'number',
    version: 'version',
    tags: { array: 'text' },
    policy: { object: { mode: 'text' } },
    attributes,
    parts: { array: { name: 'text', attributes } },
  },
}

interface Attribute {
  readonly name: string
  readonly value: string
}
interface Thing {
  readonly name?: string
  readonly size: number
  readonly version: string
  readonly tags: readonly string[]
  readonly policy: { readonly mode: string }
  readonly attributes: readonly Attribute[]
  readonly parts: readonly { readonly name: string; readonly attributes: readonly Attribute[] }[]
}

interface Comparison {
  readonly kind: 'comparison'
  readonly selector: string
  readonly operator: string
  readonly values: readonly string[]
}
interface Group {
  readonly kind: 'and' | 'or'
  readonly items: readonly Expression[]
  readonly parentheses: boolean
}
type Expression = Comparison | Group

// Few letters, so that things and filters meet; all that SQL patterns and RSQL give a meaning.
const text = fc.string({
  unit: fc.constantFrom('a', 'b', 'B', '%', '_', '\\', '"', "'", ';', '(', 'é', '𝕏', '\uffee'),
  maxLength: 3,
})
const version = fc.constantFrom(
  '1.0.0',
  '1.0.0-rc.1',
  '1.0.0-rc.10',
  '1.0.0-rc.2',
  '1.0.0-beta',
  '1.10.0',
  '1.9.0',
  '2.0.0+b',
)
const attribute = fc.record({ name: text, value: text })
const thing: fc.Arbitrary<Thing> = fc.record(
  {
    name: text,
    size: fc.integer({ min: -3, max: 3 }),
    version,
    tags: fc.array(text, { maxLength: 3 }),
    policy: fc.record({ mode: text }),
    attributes: fc.array(attribute, { maxLength: 3 }),
    parts: fc.array(fc.record({ name: text, attributes: fc.array(attribute, { maxLength: 2 }) }), { maxLength: 2 }),
  },
  { requiredKeys: ['size', 'version', 'tags', 'policy', 'attributes', 'parts'] },
)

const ORDERING = ['=gt=', '>', '=ge=', '>=', '=lt=', '<', '=le=', '<=']
const pattern = fc.tuple(text, fc.constantFrom('', '*', '**'), text).map((parts) => parts.join(''))
const comparisonOf = (selector: string, value: fc.Arbitrary<string>, ordered: fc.Arbitrary<string>) =>
  fc.oneof(
    fc.record({
      kind: fc.constant('comparison' as const),
      selector: fc.constant(selector),
      operator: fc.constantFrom('==', '!='),
      values: value.map((one) => [one]),
    }),
    fc.record({
      kind: fc.constant('comparison' as const),
      selector: fc.constant(selector),
      operator: fc.constantFrom('=in=', '=out='),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({
      kind: fc.constant('comparison' as const),
      selector: fc.constant(selector),
      operator: fc.constantFrom(...ORDERING),
      values: ordered.map((one) => [one]),
    }),
  )
const size = fc.integer({ min: -3, max: 3 }).map(String)
const TEXTS = ['name', 'tags', 'policy.mode', 'parts.name']
// Often, as their elements are what is hard.
const OFTEN = ['attributes.name', 'attributes.value', 'parts.attributes.name', 'parts.attributes.value']
const comparison: fc.Arbitrary<Comparison> = fc.oneof(
  comparisonOf('size', size, size),
  comparisonOf('version', version, version),
  ...[...TEXTS, ...OFTEN, ...OFTEN].map((selector) => comparisonOf(selector, pattern, text)),
)

const { expression } = fc.letrec<{ expression: Expression; plainAnd: Expression; group: Expression }>((tie) => ({
  expression: fc.oneof({ maxDepth: 3 }, comparison, tie('group'), tie('plainAnd')),
  /** `;` binds closer than `,`, so what stands between `;` is a condition or in parentheses. */
  plainAnd: fc.record({
    kind: fc.constant('and' as const),
    items: fc.array(fc.oneof({ maxDepth: 3 }, comparison, tie('group')), { minLength: 2, maxLength: 3 }),
    parentheses: fc.constant(false),
  }),
  group: fc.oneof(
    { maxDepth: 3 },
    tie('plainAnd').map((and) => ({ ...(and as Group), parentheses: true })),
    fc.record({
      kind: fc.constant('or' as const),
      items: fc.array(fc.oneof({ maxDepth: 3 }, comparison, tie('group'), tie('plainAnd')), {
        minLength: 2,
        maxLength: 3,
      }),
      parentheses: fc.constant(true),
    }),
  ),
}))

const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&')}"`

function written(given: Expression): string {
  if (given.kind === 'comparison') {
    const values = given.values.map(quoted)
    return `${given.selector}${given.operator}${/in|out/.test(given.operator) ? `(${values.join(',')})` : values.join()}`
  }
  const inner = given.items.map(written).join(given.kind === 'and' ? ';' : ',')
  return given.parentheses ? `(${inner})` : inner
}

/** The element that is spoken of, by the name of its array. */
type Elements = ReadonlyMap<string, unknown>

function holds(given: Expression, one: Thing, elements: Elements, inParentheses: boolean): boolean {
  if (given.kind === 'comparison') return compares(given, one, elements)
  const inside = inParentheses || given.parentheses
  if (given.kind === 'or') return given.items.some((item) => holds(item, one, elements, inside))
  const known: Elements = given.parentheses ? new Map() : elements
  const open = (inside ? sharedArrays(given.items) : []).filter((name) => !known.has(name))
  return assignments(one, open, known).some((each) => given.items.every((item) => holds(item, one, each, inside)))
}

/** Every choice of one element for each of the arrays. */
function assignments(one: Thing, names: readonly string[], known: Elements): readonly Elements[] {
  return names.reduce<readonly Elements[]>(
    (all, name) =>
      all.flatMap((elements) => {
        const part = elements.get('parts')
        const source = name === 'parts.attributes' && part !== undefined ? part : one
        const array = elementsOf(source, source === one ? name : 'attributes')
        return array.map((element) => new Map(elements).set(name, element))
      }),
    [known],
  )
}

function elementsOf(source: unknown, name: string): readonly unknown[] {
  return name
    .split('.')
    .reduce<readonly unknown[]>(
      (from, key) => from.flatMap((each) => (each as Record<string, unknown[]>)[key] ?? []),
      [source],
    )
}

const ARRAYS = ['attributes', 'parts', 'parts.attributes']
const arraysOf = (selector: string): readonly string[] => ARRAYS.filter((name) => selector.startsWith(`${name}.`))

function sharedArrays(items: readonly Expression[]): readonly string[] {
  return ARRAYS.filter(
    (name) => items.filter((item) => speaksOf(item, name)).length > 1 && items.some((item) => needs(item, name)),
  )
}

function speaksOf(item: Expression, name: string): boolean {
  if (item.kind === 'comparison') return arraysOf(item.selector).includes(name)
  return !(item.kind === 'and' && item.parentheses) && item.items.some((each) => speaksOf(each, name))
}

function needs(item: Expression, name: string): boolean {
  if (item.kind === 'comparison') return arraysOf(item.selector).includes(name)
  if (item.kind === 'or') return item.items.every((each) => needs(each, name))
  return !item.parentheses && item.items.some((each) => needs(each, name))
}

function compares({ selector, operator, values }: Comparison, one: Thing, elements: Elements): boolean {
  const nearest = arraysOf(selector).findLast((name) => elements.has(name))
  const source = nearest === undefined ? one : elements.get(nearest)
  const found = elementsOf(source, nearest === undefined ? selector : selector.slice(nearest.length + 1))
  const [wanted = ''] = values
  const type = selector === 'size' || selector === 'version' ? selector : 'text'
  const equal = found.some((value) => values.some((each) => matches(String(value), each)))
  const order = (test: (sign: number) => boolean) => found.some((value) => test(compared(String(value), wanted, type)))
  switch (operator) {
    case '==':
    case '=in=':
      return equal
    case '!=':
    case '=out=':
      return !equal
    case '=gt=':
    case '>':
      return order((sign) => sign > 0)
    case '=ge=':
    case '>=':
      return order((sign) => sign >= 0)
    case '=lt=':
    case '<':
      return order((sign) => sign < 0)
    default:
      return order((sign) => sign <= 0)
  }
}

function matches(value: string, wanted: string): boolean {
  const source = wanted.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*+/g, '.*')
  return new RegExp(`^${source}$`, 'su').test(value)
}

function compared(left: string, right: string, type: 'size' | 'version' | 'text'): number {
  if (type === 'size') return Number(left) - Number(right)
  if (type === 'version') return left.split('+')[0] === right.split('+')[0] ? 0 : compareVersions(left, right)
  return Buffer.compare(Buffer.from(left), Buffer.from(right))
}

const database = withDatabase()
let open: OpenDatabase
beforeAll(() => {
  const { connectionString } = database()
  open = openDatabase({ connectionString, maxConnections: 2, onIdleError: () => undefined })
})
afterAll(() => open.close())

async function found(where: string, things: readonly Thing[]): Promise<readonly number[]> {
  const { rows } = await sql<{ position: number }>`
    select position - 1 as position
    from jsonb_array_elements(${JSON.stringify(things)}::jsonb) with ordinality as things(document, position)
    where ${compileWhere(where, resource)} order by position`.execute(open.db)
  return rows.map(({ position }) => position)
}

describe('a filter in SQL', () => {
  it('finds what it means', async () => {
    await fc.assert(
      fc.asyncProperty(expression, fc.array(thing, { minLength: 1, maxLength: 12 }), async (given, things) => {
        const where = written(given)
        fc.pre(where.length >= 5 && where.length <= 1024)
        const meant = things.flatMap((one, position) => (holds(given, one, new Map(), false) ? [position] : []))
        expect(await found(where, things)).toEqual(meant)
      }),
      { numRuns: 400 },
    )
  })

  it.each([
    ['(attributes.name==color;attributes.value==Bl*)', [0, 1]],
    ['attributes.name==color;attributes.value==Bl*', [0, 1, 2, 3, 4]],
    ['(attributes.name==color;attributes.value==Bl*);(attributes.name==taste;attributes.value==*berry)', [1]],
    ['(attributes.name==color;(attributes.value==Blue,attributes.value==Red))', [0, 2, 3]],
    ['(attributes.name==color;attributes.value!=Blue)', [1, 2, 3, 4]],
    ['attributes.name!=taste', [0, 5]],
    ['attributes.value!=Blue', [1, 3, 5]],
    // Parentheses of their own speak of an element of their own.
    ['(attributes.name==color;attributes.value==*;(attributes.name==taste;attributes.value==Blue))', [2, 4]],
    // Nothing here needs an attribute.
    ['((name==bare,attributes.name==color);(name==bare,attributes.value==Black))', [1, 3, 5]],
  ])('binds conditions to one element in parentheses: %s', async (where, positions) => {
    const of = (...pairs: readonly (readonly [string, string])[]): Thing => ({
      name: pairs.length === 0 ? 'bare' : 'thing',
      size: 1,
      version: '1.0.0',
      tags: [],
      policy: { mode: '' },
      attributes: pairs.map(([name, value]) => ({ name, value })),
      parts: [],
    })
    const things = [
      of(['color', 'Blue']),
      of(['color', 'Black'], ['taste', 'Blackberry']),
      of(['color', 'Red'], ['taste', 'Blue']),
      of(['color', 'Red'], ['taste', 'Black'], ['shape', 'Raspberry']),
      of(['color', 'Green'], ['taste', 'Blue']),
      of(),
    ]
    expect(await found(where, things)).toEqual(positions)
  })

  it('runs whatever a client sends, or refuses it', async () => {
    const piece = fc.constantFrom(
      ...'()\'";,=!<>*. a1',
      '==',
      '=in=(',
      '!=',
      'name',
      'size',
      'tags',
      'attributes.name',
      ' or ',
    )
    const sentence = fc.array(piece, { minLength: 3, maxLength: 14 }).map((all) => all.join(''))
    const given = fc.oneof(
      sentence,
      fc.tuple(expression.map(written), sentence).map((all) => all.join('')),
    )
    await fc.assert(
      fc.asyncProperty(given, async (where) => {
        await found(where, []).catch((error: unknown) => expect(error).toMatchObject({ code: 'INVALID_INPUT' }))
      }),
      { numRuns: 500 },
    )
  })
})

describe('versions in SQL', () => {
  it('are ordered as in a portal file', async () => {
    const number = fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String)
    const identifier = fc.oneof(number, fc.stringMatching(/^[a-zA-Z-][a-zA-Z0-9-]{0,3}$/))
    const semantic = fc
      .tuple(fc.tuple(number, number, number), fc.array(identifier, { maxLength: 3 }))
      .map(([core, identifiers]) => core.join('.') + (identifiers.length > 0 ? `-${identifiers.join('.')}` : ''))
    await fc.assert(
      fc.asyncProperty(fc.array(semantic, { maxLength: 10 }), async (versions) => {
        const { rows } = await sql<{ version: string }>`
          select version from unnest(${versions}::text[]) version
          order by semantic_version_key(version), version collate "C"`.execute(open.db)
        expect(rows.map((row) => row.version)).toEqual(versions.toSorted(compareVersions))
      }),
      { numRuns: 100 },
    )
  })
})
