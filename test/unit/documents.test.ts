import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { DOCUMENT_TABLES, withTable } from '../../scripts/document-tables.ts'
import { createOutput } from '../../src/cli/output.ts'
import { createProgram } from '../../src/cli/program.ts'
import { settings } from '../../src/config.ts'
import { parsePortalFile } from '../../src/portal-file/parse-portal-file.ts'
import { portalFileSchema } from '../../src/portal-file/portal-file-schema.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string): string => readFileSync(join(repository, path), 'utf8')

const documents = [
  'README.md',
  'CHANGELOG.md',
  ...readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path.replaceAll('\\', '/')}`),
]

describe.each(DOCUMENT_TABLES)('the table of $name in $document', (table) => {
  it('is what the code says (`npm run docs` writes it)', () => {
    const text = read(table.document)
    expect(text).toBe(withTable(text, table))
  })

  it('would be noticed to be out of date', () => {
    const text = read(table.document)
    const [, , row = ''] = table.render().split('\n')
    expect(text).toContain(row)
    expect(withTable(text.replace(row, '| one | other |'), table)).toBe(text)
  })
})

/** Keys of every map of a schema, by its path, such as `brokers[].management`. */
function keysByPath(schema: unknown, path = '', found = new Map<string, readonly string[]>()) {
  const definition = definitionOf(schema)
  switch (definition.type) {
    case 'object': {
      const shape = recordOf(definition.shape)
      if (path !== '') found.set(path, Object.keys(shape))
      for (const [key, value] of Object.entries(shape)) keysByPath(value, path === '' ? key : `${path}.${key}`, found)
      break
    }
    case 'array':
      keysByPath(definition.element, `${path}[]`, found)
      break
    case 'optional':
    case 'default':
      keysByPath(definition.innerType, path, found)
      break
    case 'pipe':
      keysByPath(definition.out, path, found)
      break
  }
  return found
}

const definitionOf = (schema: unknown) => recordOf(recordOf(schema).def)

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new TypeError('the schema has another form than expected')
  return value as Readonly<Record<string, unknown>>
}

/** First cells of the table below each heading that is a path. */
function documentedKeys(text: string): ReadonlyMap<string, readonly string[]> {
  const sections = text.split(/^### /m).slice(1)
  return new Map(
    sections.map((section) => {
      const path = /^`([^`]+)`/.exec(section)?.[1] ?? ''
      return [path, [...section.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? '')]
    }),
  )
}

describe('the reference of the portal file', () => {
  const text = read('docs/portal-file.md')

  it('names every key that a portal file may have, each where it belongs, and no other', () => {
    const expected = keysByPath(portalFileSchema)
    expect(expected.size).toBeGreaterThan(10)
    expect(Object.fromEntries(documentedKeys(text))).toEqual(Object.fromEntries(expected))
  })

  it('shows an example that is valid', () => {
    const example = /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
    expect(portalFileSchema.safeParse(parse(example)).error?.issues).toBeUndefined()
  })
})

describe('the README', () => {
  it('lists every command, and no other', () => {
    const listed = [...read('README.md').matchAll(/^\| `keymesh ([a-z]+)/gm)].map((match) => match[1])
    const shown = program.createHelp().visibleCommands(program)
    const names = shown.map((command) => command.name()).filter((name) => name !== 'help')
    expect(listed.toSorted()).toEqual(names.toSorted())
  })

  it('walks through a portal file that can be imported', async () => {
    const file = await parsePortalFile(join(repository, 'docs/quick-start.yaml'), { env: () => undefined })
    expect(file.warnings).toEqual([])
    expect(read('README.md')).toContain(`clientUsernames/${file.registrations[0]?.credentials[0]?.consumerKey}`)
  })
})

/** As they are made of headings: in lower case, without punctuation, blanks as dashes. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

describe('the settings', () => {
  const config = read('src/config.ts')

  it('are each read where the configuration is made', () => {
    // Once in the table, and again where it is read.
    const unread = settings.filter(({ name }) => [...config.matchAll(new RegExp(`\\b${name}\\b`, 'g'))].length < 2)
    expect(unread.map(({ name }) => name)).toEqual([])
  })

  it('are each used: no field of the configuration is made in vain', () => {
    const sources = readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && path !== 'config.ts')
      .map((path) => read(join('src', path)))
      .join('\n')
    const declared = /export interface Config \{([\s\S]*?)\n\}/.exec(config)?.[1] ?? ''
    const fields = [...declared.matchAll(/^ {2}readonly (\w+)/gm)].map(([, name = '']) => name)
    expect(fields.length).toBeGreaterThan(20)
    expect(fields.filter((name) => !new RegExp(`\\b${name}\\b`).test(sources))).toEqual([])
  })
})

describe.each(documents)('%s', (path) => {
  const text = read(path)

  it('links to files that exist', () => {
    const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? '')
    const missing = targets.filter((target) => !existsSync(join(repository, dirname(path), target)))
    expect(missing).toEqual([])
  })

  it('links to headings that exist', () => {
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)]
    const missing = targets.filter(([, target = '', anchor = '']) => {
      const other = target === '' ? text : read(join(dirname(path), target))
      return !anchorsOf(other).has(anchor)
    })
    expect(missing.map(([link]) => link)).toEqual([])
  })

  it('names only settings that exist', () => {
    const known = new Set(settings.map(({ name }) => name))
    const named = [...text.matchAll(/\bKEYMESH_[A-Z0-9_]+\b/g)].map(([name]) => name)
    const unknown = named.filter((name) => !known.has(name) && !/^KEYMESH_(?:DEMO_|TEST_|$)/.test(name))
    expect(unknown).toEqual([])
  })

  it('names only scripts that package.json has', () => {
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> }
    const named = [...text.matchAll(/\bnpm run (?:--silent )?([a-z][a-z:-]*)/g)].map((match) => match[1] ?? '')
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })

  it('names only commands and options that the program has', () => {
    // Prose says "Keymesh"; in lower case it is the command.
    const calls = [...text.matchAll(/\bkeymesh ([a-z]+)([^`\n|]*)/g)]
    expect(calls.flatMap(([, name = '', rest = '']) => unknownIn(program, name, rest))).toEqual([])
  })
})

/** What a call names that the program does not have: the command, its subcommand, or options. */
function unknownIn(parent: Command, name: string, rest: string): readonly string[] {
  const command = parent.commands.find((known) => known.name() === name)
  if (command === undefined) return [name]
  const [, word = ''] = /^ ([a-z]+(?:-[a-z]+)*)/.exec(rest) ?? []
  if (command.commands.length > 0 && word !== '') return unknownIn(command, word, rest.slice(word.length + 1))
  const options = new Set(command.options.map(({ long }) => long))
  const named = [...rest.matchAll(/(?<=\s)--[a-z][a-z-]*/g)].map(([option]) => option)
  return named.filter((option) => !options.has(option) && option !== '--help').map((option) => `${name} ${option}`)
}

const refuse = () => Promise.reject(new Error('no command runs here'))
const program = createProgram(
  {
    withContext: refuse,
    output: () => createOutput({ out: process.stdout, err: process.stderr }, { json: false }),
    exitWith: () => undefined,
    signal: new AbortController().signal,
  },
  { out: process.stdout, err: process.stderr },
)
