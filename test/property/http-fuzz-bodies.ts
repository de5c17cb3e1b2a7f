import fc from 'fast-check'
import { TEST_PASSWORD } from '../helpers/http.ts'
import { anyJson, hostileText, type KnownIds, nested, plainText, withKey } from './http-fuzz-values.ts'

/** As much of a published JSON schema as bodies are made from. */
export interface BodySchema {
  readonly $ref?: string
  readonly type?: string
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: BodySchema
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | BodySchema
  readonly anyOf?: readonly BodySchema[]
  readonly oneOf?: readonly BodySchema[]
  readonly allOf?: readonly BodySchema[]
}

export type Schemas = Readonly<Record<string, BodySchema>>

interface Making {
  readonly schemas: Schemas
  readonly known: KnownIds
}

/** Values that fit a published schema, mostly: what a schema does not say, such as a rule in words, is met by chance. */
export function fitting(schema: BodySchema, making: Making, name = ''): fc.Arbitrary<unknown> {
  if (schema.$ref !== undefined) {
    const named = making.schemas[schema.$ref.split('/').at(-1) ?? '']
    return named === undefined ? anyJson : fitting(named, making, name)
  }
  const fit = notNull(schema, making, name)
  return schema.nullable === true ? fc.oneof({ weight: 4, arbitrary: fit }, fc.constant(null)) : fit
}

function notNull(schema: BodySchema, making: Making, name: string): fc.Arbitrary<unknown> {
  const { anyOf, oneOf, allOf } = schema
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return fc.oneof(...choices.map((each) => fitting(each, making, name)))
  if (allOf !== undefined) {
    const parts = allOf.map((each) => fitting(each, making, name))
    return fc.tuple(...parts).map((values) => Object.assign({}, ...values) as unknown)
  }
  switch (schema.type) {
    case 'object':
      return fittingObject(schema, making)
    case 'array':
      return fc.array(fitting(schema.items ?? {}, making, name), { maxLength: 3 })
    case 'string':
      return fittingText(schema, making.known, name)
    case 'integer':
      return fc.integer({ min: lowest(schema), max: Math.max(lowest(schema), schema.maximum ?? 2 ** 52) })
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9, noNaN: true })
    case 'boolean':
      return fc.boolean()
    default:
      return anyJson
  }
}

const lowest = ({ minimum = -1 }: BodySchema): number => Math.max(minimum, -(2 ** 52))

function fittingObject(schema: BodySchema, making: Making): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema
  if (Object.keys(properties).length === 0 && typeof additionalProperties === 'object') {
    return fc.dictionary(plainText, fitting(additionalProperties, making), { maxKeys: 3 })
  }
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [name, fitting(each, making, name)]),
  )
  return fc.record(fields, { requiredKeys: required.filter((name) => name in fields), noNullPrototype: true })
}

const DOCUMENT = JSON.stringify({
  asyncapi: '2.6.0',
  info: { title: 'Fuzzed', version: '1.0.0' },
  channels: { 'fuzzed/{id}': { subscribe: { message: { payload: { type: 'object' } } } } },
})

/** Of fields whose rules no schema tells. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  uri: ['https://hooks.example.org/fuzzed'],
  url: ['https://fuzzed.example.org:943'],
  host: ['fuzzed.example.org'],
  document: [DOCUMENT],
  window: ['02:00-04:00'],
  version: ['1.0.1', '2.0.0-rc.1'],
  currentPassword: [TEST_PASSWORD],
  password: [TEST_PASSWORD],
  id: ['fuzzed1', 'fuzzed2'],
  values: ['EU', 'US', 'X*'],
}

function fittingText({ pattern, minLength = 0 }: BodySchema, known: KnownIds, name: string): fc.Arbitrary<string> {
  const meant = MEANT[name]
  if (meant !== undefined) return fc.constantFrom(...meant)
  const texts = fc.oneof(
    { weight: known[name] === undefined ? 0 : 8, arbitrary: fc.constantFrom(...(known[name] ?? [''])) },
    { weight: 3, arbitrary: plainText },
    ...(pattern === undefined ? [] : [{ weight: 1, arbitrary: matching(pattern) }]),
  )
  const shape = expressionOf(pattern)
  return texts
    .map((text) => (shape?.test(text) === false ? text.replaceAll(/[^A-Za-z0-9]/g, '') : text))
    .map((text) => (text.length < minLength ? text.padEnd(minLength, '0') : text))
}

function expressionOf(pattern: string | undefined): RegExp | null {
  try {
    return pattern === undefined ? null : new RegExp(pattern)
  } catch {
    return null
  }
}

function matching(pattern: string): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(new RegExp(pattern), { size: 'small' })
  } catch {
    // Not every expression can be turned around.
    return plainText
  }
}

type Mutate = (value: unknown) => unknown

/** What is done to one place of a body, whatever is there. */
const mutation: fc.Arbitrary<Mutate> = fc.oneof(
  anyJson.map(
    (other): Mutate =>
      () =>
        other,
  ),
  fc.tuple(fc.oneof(fc.constantFrom('__proto__', 'constructor', 'prototype', 'unknown', ''), hostileText), anyJson).map(
    ([key, other]): Mutate =>
      (value) =>
        typeof value === 'object' && value !== null && !Array.isArray(value) ? withKey(value, key, other) : other,
  ),
  fc.constant<Mutate>((value) => [value]),
  fc.constant<Mutate>((value) => ({ value })),
  fc.constant<Mutate>((value) => (typeof value === 'string' ? Number(value) : JSON.stringify(value))),
  fc.constant<Mutate>(() => undefined),
)

/** The value with one place in it mutated; `steps` say which. */
function mutatedAt(value: unknown, steps: readonly number[], mutate: Mutate): unknown {
  const [step, ...rest] = steps
  if (typeof value !== 'object' || value === null || step === undefined) return mutate(value)
  const keys = Object.keys(value)
  const key = keys[step % Math.max(1, keys.length)]
  if (key === undefined) return mutate(value)
  const inner = mutatedAt((value as Record<string, unknown>)[key], rest, mutate)
  if (Array.isArray(value)) return value.map((each: unknown, index) => (String(index) === key ? inner : each))
  return withKey(value, key, inner)
}

const mutated = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(value, fc.array(fc.nat(20), { maxLength: 4 }), mutation)
    .map(([body, steps, mutate]) => mutatedAt(body, steps, mutate))

/** JSON text, sometimes none that can be parsed. Lone surrogates stay as they are and become bytes that are no text. */
const textOf = (value: unknown): string => JSON.stringify(value) ?? ''
const broken: fc.Arbitrary<(text: string) => string> = fc.oneof(
  fc.nat(100).map((at) => (text: string) => text.slice(0, at)),
  fc.constantFrom<(text: string) => string>(
    (text) => `\ufeff${text}`,
    (text) => `${text}${text}`,
    (text) => text.replace(/^\{/, '{"name":1,'),
    (text) => text.replaceAll('"', "'"),
    (text) => `${text},`,
    (text) => `${text}\u0000`,
    () => '',
    () => ' ',
    () => 'NaN',
    () => '{"a":"\\ud800"}',
    () => '{"__proto__":{"isAdministrator":true}}',
    () => '{"constructor":{"prototype":{"a":1}}}',
    () => '['.repeat(50_000),
    () => `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    () => `{"name":${JSON.stringify(nested(3000))}}`,
    () => `{"name":"${'x'.repeat(1_100_000)}"}`,
    () => `{"name":"${'é'.repeat(400_000)}"}`,
    () => `{${Array.from({ length: 30_000 }, (_, index) => `"k${index}":0`).join(',')}}`,
  ),
)

/** Texts of bodies: as the schema has it, with one place changed, something else, and what is no JSON. */
export function bodies(schema: BodySchema, making: Making): fc.Arbitrary<string> {
  const good = fitting(schema, making)
  const text = good.map(textOf)
  return fc.oneof(
    { weight: 6, arbitrary: text },
    { weight: 6, arbitrary: mutated(good).map(textOf) },
    { weight: 1, arbitrary: anyJson.map(textOf) },
    { weight: 1, arbitrary: fc.tuple(text, broken).map(([one, breaking]) => breaking(one)) },
  )
}
