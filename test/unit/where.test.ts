import fc from 'fast-check'
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { compileWhere, type WhereResource } from '../../src/store/where.ts'
import { parseWhere } from '../../src/store/where-expression.ts'

const resource: WhereResource = {
  name: 'a thing',
  document: sql`document`,
  fields: {
    name: 'text',
    size: 'number',
    version: 'version',
    tags: { array: 'text' },
    plans: { array: { name: 'text' } },
    policy: { object: { mode: 'text' } },
  },
  aliases: { plan: 'plans' },
}

const compiler = new Kysely<unknown>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})
const compiled = (text: string) => compileWhere(text, resource).compile(compiler)

function problemsOf(text: string): readonly string[] {
  try {
    compileWhere(text, resource)
  } catch (error) {
    if (error instanceof InvalidInputError) {
      expect(error.problems.every(({ path }) => path === 'where')).toBe(true)
      return error.problems.map(({ message }) => message)
    }
    throw error
  }
  return []
}

describe('a filter', () => {
  it('binds every value as a parameter', () => {
    const { sql: text, parameters } = compiled(`name=="x' or true --",plans.name=in=("a;b",'c*')`)
    expect(parameters).toEqual(["x' or true --", 'a;b', 'c%'])
    expect(text).not.toContain('true --')
  })

  it.each([
    ['50%_off\\*', ['50\\%\\_off\\\\%']],
    ['**a***', ['%a%']],
    ['50%_off', ['50%_off']],
  ])('takes no wildcard but the asterisk: %s', (value, parameters) => {
    expect(compiled(`name=='${value.replaceAll('\\', '\\\\')}'`).parameters).toEqual(parameters)
  })

  it('knows fields by their other names', () => {
    expect(compiled('plan.name==Gold*').sql).toBe(compiled('plans.name==Gold*').sql)
  })
})

const REFUSED: Readonly<Record<string, readonly [text: string, ...messages: readonly string[]]>> = {
  'a short text': ['a==1', 'must be 5 to 1024 characters long, it has 4'],
  'a long text': [`name==${'x'.repeat(1020)}`, 'must be 5 to 1024 characters long, it has 1026'],
  'a control character': ['name==a\u0001', 'must not contain control characters'],
  'a NUL': ['name=="a\u0000"', 'must not contain control characters'],
  'half a character': ['name==\ud800', 'must not contain control characters'],
  'no operator': ['nameis', 'is no RSQL expression: Unexpected end.'],
  'an open parenthesis': [
    '(name==a',
    'is no RSQL expression: Unexpected end. Did you forget to close parenthesis at position 1?',
  ],
  'a closed parenthesis': ['name==a)', "is no RSQL expression: Unexpected character ')' at position 8."],
  'an open quote': ["name=='a", "is no RSQL expression: Unclosed quote ''' at position 7."],
  'an unknown operator': [
    'name=like=a',
    'has the unknown operator =like=; known are == != > =gt= >= =ge= < =lt= <= =le= =in= =out=',
  ],
  'a list for one value': ['name==(a,b)', 'compares name with a list by =='],
  'several unknown fields': [
    'nome==a;plans.price==1,nome==b',
    'nome is no field of a thing',
    'plans.price is no field of a thing',
  ],
  'a field of a text': ['name.first==a', 'name.first is no field of a thing'],
  'an item of an array of texts': ['tags.name==a', 'tags.name is no field of a thing'],
  'what every object has': ['constructor.name==a', 'constructor.name is no field of a thing'],
  'an array of objects': ['plans==a', 'plans has fields of its own; name one of them'],
  'an object': ['policy==a', 'policy has fields of its own; name one of them'],
  'a text for a number': ['size=gt=big', 'size is compared with integers'],
  'a wildcard for a number': ['size==1*', 'size is compared with integers'],
  'a text for a version': ['version=gt=new', 'version is ordered as semantic versions such as 1.2.0'],
  'deep nesting': [`${'('.repeat(21)}name==a${')'.repeat(21)}`, 'must not be nested more than 20 deep'],
  'many conditions': [Array.from({ length: 51 }, () => 'size==1').join(','), 'must not have more than 50 conditions'],
}

describe('a filter is refused for', () => {
  it.each(Object.entries(REFUSED))('%s', (_sentence, [text, ...messages]) => {
    expect(problemsOf(text)).toEqual(messages)
  })

  it('nothing else than a reason that it names, whatever it is', () => {
    const piece = fc.constantFrom(...'()\'"\\;,=!<>~*. a1é\u0001', '==', '=in=(', 'name', 'plans.name', ' and ', ' or ')
    const text = fc.oneof(
      fc.string({ maxLength: 60, unit: 'binary' }),
      fc.array(piece, { maxLength: 60 }).map((all) => all.join('')),
    )
    fc.assert(
      fc.property(text, (given) => {
        if (problemsOf(given).length === 0) expect(compiled(given).sql).not.toBe('')
      }),
      { numRuns: 500 },
    )
  })
})

describe('parentheses', () => {
  const condition = (selector: string, value: string) => ({
    kind: 'comparison',
    selector,
    operator: '==',
    values: [value],
  })
  const [a, b, c] = [condition('a', '1'), condition('b', '2'), condition('c', '3')]

  it.each([
    ['a==1;b==2', { kind: 'and', elements: 'independent', items: [a, b] }],
    ['(a==1;b==2)', { kind: 'and', elements: 'own', items: [a, b] }],
    ['((a==1);b==2)', { kind: 'and', elements: 'own', items: [a, b] }],
    [
      '(a==1;b==2);c==3',
      { kind: 'and', elements: 'independent', items: [{ kind: 'and', elements: 'own', items: [a, b] }, c] },
    ],
    [
      'a==1;(b==2;c==3)',
      { kind: 'and', elements: 'independent', items: [a, { kind: 'and', elements: 'own', items: [b, c] }] },
    ],
    ['(a==1;b==2,c==3)', { kind: 'or', items: [{ kind: 'and', elements: 'inherited', items: [a, b] }, c] }],
    ['a==1,(b==2,c==3)', { kind: 'or', items: [a, { kind: 'or', items: [b, c] }] }],
    ['a==1 and ( b==2 or c==3 )', { kind: 'and', elements: 'independent', items: [a, { kind: 'or', items: [b, c] }] }],
    [
      '(a==\'(\';b=in=(x,"y)"))',
      {
        kind: 'and',
        elements: 'own',
        items: [condition('a', '('), { kind: 'comparison', selector: 'b', operator: 'in', values: ['x', 'y)'] }],
      },
    ],
    ["(a=='it\\'s (';b==2)", { kind: 'and', elements: 'own', items: [condition('a', "it's ("), b] }],
  ])('of %s are kept', (text, tree) => {
    expect(parseWhere(text)).toEqual(tree)
  })
})
