import fc from 'fast-check'

/** What is known to be there, by the path segment before it or by the name of a field. */
export type KnownIds = Readonly<Record<string, readonly string[]>>

/** Texts that meet every layer between a socket and a table: none of them is good for an id. */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '.',
  '..',
  '../..',
  '-1',
  '0',
  '1e999',
  '9'.repeat(40),
  'null',
  'undefined',
  'NaN',
  '*',
  '%',
  '$1',
  '\\',
  "' or 1=1 --",
  '"; drop table registrations',
  '<script>',
  '{}',
  '[]',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'default',
  '#admin',
  'none',
  'a\nb',
  'a\r\nset-cookie: x=1',
  '\u007f',
  '\u0085',
  '\u202e',
  '\ufeff',
  '\ufffe',
  'é',
  'ﬀ',
  'İ',
  '𝕏',
  '👩‍👩‍👧',
  'x@y',
  'x@| y',
  'x@\u2028',
  'a'.repeat(65),
  'a'.repeat(189),
  'a'.repeat(257),
  'é'.repeat(1025),
  `${'('.repeat(500)}a==b${')'.repeat(500)}`,
]

/** No column of PostgreSQL holds the first three, and few the last. */
const WORST = ['a\u0000b', '\ud800', 'a\udfffb', 'a'.repeat(9000)]

export const hostileText = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORST) },
  { weight: 6, arbitrary: fc.constantFrom(...HOSTILE_TEXTS) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom('\ud83d', '\ude00', 'a', '\u0000'), maxLength: 5 }) },
)

/** Looks like an id or a name, and may be one that an earlier request has made. */
export const plainText = fc.oneof(
  fc.constantFrom('fuzz-1', 'fuzz-2', 'fuzz1', 'fuzz2', 'fuzzedkey1', 'gold', '1.0.0', '1.0.1', 'X*', 'a name'),
  fc.string({ unit: fc.constantFrom('a', 'b', 'Z', '0', '9', '-', '_'), minLength: 1, maxLength: 20 }),
)

/** One that is known under the first of these names that is known at all. */
export function knownId(known: KnownIds, ...names: readonly string[]): fc.Arbitrary<string> {
  const own = names.map((name) => known[name]).find((ids) => ids !== undefined)
  return fc.constantFrom(...(own ?? Object.values(known).flat()))
}

/** A known one, one of something else, one that is not there, or none at all. */
export const idOf = (known: KnownIds, ...names: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: knownId(known, ...names) },
    { weight: 2, arbitrary: knownId(known) },
    { weight: 2, arbitrary: plainText },
    { weight: 4, arbitrary: hostileText },
  )

/** Any JSON value, prototype keys and deep nesting included. */
export const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e308, 2 ** 53, '', [], {}, [[]]) },
  { weight: 3, arbitrary: hostileText },
  { weight: 1, arbitrary: fc.integer({ min: 10, max: 1500 }).map((depth) => nested(depth)) },
  { weight: 1, arbitrary: fc.integer({ min: 257, max: 3000 }).map((length) => Array.from({ length }, () => 'item')) },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }) },
  { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'prototype').map((key) => withKey({}, key, {})) },
)

export function nested(depth: number): unknown {
  let value: unknown = 'deep'
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

/** A copy with one more key, `__proto__` as any other. */
export function withKey(object: object, key: string, value: unknown): object {
  const copy = { ...object }
  Object.defineProperty(copy, key, { value, enumerable: true, configurable: true, writable: true })
  return copy
}

const SELECTORS = [
  'name',
  'id',
  'state',
  'version',
  'attributes.name',
  'plans.id',
  'createdTime',
  'nothing',
  '__proto__',
]
const OPERATORS = ['==', '!=', '=gt=', '=ge=', '=lt=', '=le=', '<', '>=', '=in=', '=out=', '=like=', '=']

const comparison = fc
  .tuple(
    fc.constantFrom(...SELECTORS),
    fc.constantFrom(...OPERATORS),
    fc.constantFrom('a', 'Order*', '*', "'quoted text'", '"%_"', '(a,b)', '(a)', '1', '1.0.0', '', '👩', '\u0000', "'"),
  )
  .map((parts) => parts.join(''))
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    comparison,
    fc
      .array(tie('expression'), { minLength: 2, maxLength: 4 })
      .chain((parts) => fc.constantFrom(';', ',', ' and ', ' or ').map((link) => parts.join(link))),
    tie('expression').map((inner) => `(${inner})`),
  ),
}))

/** RSQL, and what is nearly RSQL. */
export const whereText = fc.oneof(
  { weight: 6, arbitrary: expression },
  { weight: 2, arbitrary: fc.tuple(expression, fc.nat(60)).map(([text, at]) => text.slice(at)) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 509 }).map((n) => `${'('.repeat(n)}name==a${')'.repeat(n)}`) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 120 }).map((n) => Array(n).fill('name==a').join(';')) },
  { weight: 1, arbitrary: fc.integer({ min: 2, max: 400 }).map((n) => `name==${'a*'.repeat(n)}`) },
  { weight: 2, arbitrary: hostileText },
)
