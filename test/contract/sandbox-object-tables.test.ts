import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Attribute, Scope } from '../../src/sandbox/attribute.ts'
import { CLIENT_ATTRIBUTES } from '../../src/sandbox/client-attributes.ts'
import { MONITORED_CLIENT_USERNAME_ATTRIBUTES, MONITORED_QUEUE_ATTRIBUTES } from '../../src/sandbox/monitor-views.ts'
import { MSG_VPNS, type ObjectTable } from '../../src/sandbox/object-tables.ts'

interface Property {
  readonly [key: string]: unknown
  readonly $ref?: string
}
interface Schema {
  readonly properties: Readonly<Record<string, Property>>
}
interface Specification {
  readonly definitions: Readonly<Record<string, Schema>>
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly description: string }>>>>
}

const specUrl = (name: string) => new URL(`../../../shared/spec/${name}`, import.meta.url)
const isPresent = existsSync(fileURLToPath(specUrl('semp-v2-config.json')))
if (!isPresent)
  process.stderr.write('skipped: ../shared/spec is absent, the sandbox tables are not compared with SEMP\n')

const readSpecification = (name: string): Specification => JSON.parse(readFileSync(specUrl(name), 'utf8'))

/** Every table with the path of its collection. */
function* tablesBelow(table: ObjectTable, parentPath: string): Generator<readonly [string, ObjectTable]> {
  const path = `${parentPath}/${table.collection}`
  yield [path, table]
  const objectPath = `${path}/${table.keys.map((name) => `{${name}}`).join(',')}`
  for (const child of table.children) yield* tablesBelow(child, objectPath)
}
const TABLES = [...tablesBelow(MSG_VPNS, '')]

/** The members of a property that the sandbox answers for; texts and the meaning for config-sync are not compared. */
const COMPARED = [
  'type',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'enum',
  'x-default',
  'x-complexDefault',
  'x-identifying',
  'x-requiredPost',
  'x-readOnlyPost',
  'x-readOnlyOther',
  'x-writeOnly',
  'x-opaque',
  'x-sensitive',
  'x-readOptional',
  'x-deprecated',
  'x-autoDisable',
  'x-requiresDisable',
  'x-requires',
  'x-conflicts',
] as const

/** Without the escapes that mean nothing. */
const canonicalPattern = (pattern: string): string => pattern.replaceAll('\\/', '/').replaceAll('\\-]', '-]')

function fromSpecification(property: Property): Record<string, unknown> {
  const levels = property['x-accessLevels'] as { readonly patch?: string } | undefined
  const compared = COMPARED.flatMap((key) => (key in property ? [[key, property[key]]] : []))
  const { pattern } = property
  return {
    ...Object.fromEntries(compared),
    ...(typeof pattern === 'string' && { pattern: canonicalPattern(pattern) }),
    ...(levels?.patch !== undefined && { patch: levels.patch }),
  }
}

const FLAGS_OFF = {
  'x-identifying': false,
  'x-requiredPost': false,
  'x-readOnlyPost': false,
  'x-readOnlyOther': false,
  'x-requiresDisable': [],
}

/** The same members, told by the sandbox's table. */
function fromTable(attribute: Exclude<Attribute, { type: 'threshold' }>, tableScope: Scope): Record<string, unknown> {
  const identity = attribute.type === 'string' ? attribute.identity : undefined
  const isPlatform = typeof attribute.default === 'string' && attribute.default.endsWith('()')
  return {
    ...FLAGS_OFF,
    type: attribute.type,
    ...('minimum' in attribute && { minimum: attribute.minimum, maximum: attribute.maximum }),
    ...(attribute.type === 'string' && {
      ...(attribute.minLength !== undefined && { minLength: attribute.minLength, maxLength: attribute.maxLength }),
      ...(attribute.pattern !== undefined && { pattern: canonicalPattern(attribute.pattern.source) }),
      ...(attribute.values !== undefined && { enum: attribute.values }),
    }),
    ...(attribute.default !== undefined && { [isPlatform ? 'x-complexDefault' : 'x-default']: attribute.default }),
    'x-identifying': identity !== undefined,
    'x-requiredPost': identity === 'own',
    'x-readOnlyPost': identity === 'parent',
    'x-readOnlyOther': identity !== undefined,
    'x-writeOnly': attribute.writeOnly === true,
    'x-opaque': attribute.opaque === true,
    'x-sensitive': attribute.sensitive === true,
    'x-readOptional': attribute.readOptional === true,
    'x-deprecated': attribute.deprecated === true,
    'x-autoDisable': attribute.autoDisable ?? [],
    ...(attribute.requires !== undefined && { 'x-requires': attribute.requires }),
    ...(identity === undefined && { patch: attribute.patchScope ?? tableScope }),
  }
}

/** A threshold attribute as the four (or two) attributes of its nested object. */
function thresholdParts(attribute: Extract<Attribute, { type: 'threshold' }>): Record<string, object> {
  const { percent, value } = attribute
  const part = (maximum: number, requires: string, conflicts: readonly string[], standard: object) => ({
    ...FLAGS_OFF,
    type: 'integer',
    minimum: 0,
    maximum,
    ...standard,
    'x-writeOnly': false,
    'x-opaque': false,
    'x-sensitive': false,
    'x-readOptional': percent !== undefined && value !== undefined,
    'x-deprecated': false,
    'x-autoDisable': [],
    'x-requires': [requires],
    ...(conflicts.length > 0 && { 'x-conflicts': conflicts }),
  })
  const values = value === undefined || percent === undefined ? [] : ['clearValue', 'setValue']
  const percents = value === undefined || percent === undefined ? [] : ['clearPercent', 'setPercent']
  const absent = { 'x-complexDefault': 'DefaultNotApplicable()' }
  return {
    ...(percent && {
      clearPercent: part(100, 'setPercent', values, { 'x-default': percent.clear }),
      setPercent: part(100, 'clearPercent', values, { 'x-default': percent.set }),
    }),
    ...(value && {
      clearValue: part(
        value.maximum,
        'setValue',
        percents,
        value.clear === undefined ? absent : { 'x-default': value.clear },
      ),
      setValue: part(
        value.maximum,
        'clearValue',
        percents,
        value.set === undefined ? absent : { 'x-default': value.set },
      ),
    }),
  }
}

describe.skipIf(!isPresent)('the sandbox tables agree with the SEMP 2.49 description', () => {
  const specification = isPresent ? readSpecification('semp-v2-config.json') : { definitions: {}, paths: {} }
  const definition = (name: string) => specification.definitions[name]?.properties ?? {}

  it.each(TABLES)('%s has the same attributes, no more and no fewer', (_path, table) => {
    expect(Object.keys(table.attributes).sort()).toEqual(Object.keys(definition(table.definition)).sort())
    expect(Object.keys(table.attributes).length).toBeGreaterThan(2)
  })

  it.each(TABLES)('%s has the same types, limits, patterns, defaults and flags', (_path, table) => {
    const properties = definition(table.definition)
    for (const [name, attribute] of Object.entries(table.attributes)) {
      const property = properties[name] ?? {}
      if (attribute.type !== 'threshold') {
        expect({ [name]: fromTable(attribute, table.patchScope) }).toEqual({ [name]: fromSpecification(property) })
        continue
      }
      const nested = definition(String(property.$ref).replace('#/definitions/', ''))
      const scopes = new Set(Object.values(nested).map((part) => fromSpecification(part).patch))
      expect({ [name]: [...scopes] }).toEqual({ [name]: [attribute.patchScope ?? table.patchScope] })
      const expected = Object.entries(nested).map(([part, partProperty]) => {
        const { patch: _scope, ...members } = fromSpecification(partProperty)
        return [part, members]
      })
      expect({ [name]: thresholdParts(attribute) }).toEqual({ [name]: Object.fromEntries(expected) })
    }
  })

  it.each(TABLES)('%s has the same path, methods, page limit and links', (path, table) => {
    const objectPath = `${path}/${table.keys.map((name) => `{${name}}`).join(',')}`
    const objectMethods = Object.keys(specification.paths[objectPath] ?? {}).sort()
    expect(objectMethods).toEqual(table.updatable ? ['delete', 'get', 'patch', 'put'] : ['delete', 'get'])
    expect(Object.keys(specification.paths[path] ?? {}).sort()).toEqual(['get', 'post'])
    const [, limit] = /in a single page is (\d+)/.exec(specification.paths[path]?.get?.description ?? '') ?? []
    expect(table.maximumCount).toBe(Number(limit))
    const links = Object.keys(definition(`${table.definition}Links`))
    for (const child of table.children) expect(links).toContain(`${child.collection}Uri`)
  })

  it('the monitoring views show only attributes that the monitoring API has', () => {
    const monitor = readSpecification('semp-v2-monitor.json').definitions
    expect(Object.keys(monitor.MsgVpnQueue?.properties ?? {})).toEqual(
      expect.arrayContaining([...MONITORED_QUEUE_ATTRIBUTES]),
    )
    expect(Object.keys(monitor.MsgVpnClient?.properties ?? {})).toEqual(
      expect.arrayContaining(Object.keys(CLIENT_ATTRIBUTES)),
    )
    expect(Object.keys(monitor.MsgVpnClientUsername?.properties ?? {}).sort()).toEqual([
      ...MONITORED_CLIENT_USERNAME_ATTRIBUTES,
    ])
  })
})
