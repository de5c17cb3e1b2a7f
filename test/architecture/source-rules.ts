import { posix } from 'node:path'
import type { ParsedFile, SyntaxNode, VisitedNode } from './source-file.ts'
import type { Violation } from './violation.ts'

/** Folders whose files get clock, chance and every effect as arguments. */
const PURE_FOLDERS = ['src/domain/', 'src/reconcile/']
const EFFECTS = new Set([
  'console',
  'crypto',
  'fetch',
  'performance',
  'process',
  'queueMicrotask',
  'setImmediate',
  'setInterval',
  'setTimeout',
])
const ONLY_READER_OF_ENVIRONMENT = 'src/config.ts'

/** Rules of the code itself, for the program's files and, where they make sense there, its tests'. */
export function sourceViolations(file: ParsedFile): readonly Violation[] {
  const inProgram = !file.path.startsWith('test/')
  return [
    ...typeEscapes(file),
    ...(inProgram ? [...nameViolations(file), ...barrelViolations(file), ...environmentViolations(file)] : []),
    ...(PURE_FOLDERS.some((folder) => file.path.startsWith(folder)) ? impurities(file) : []),
  ]
}

function typeEscapes(file: ParsedFile): readonly Violation[] {
  const anys = at(file, 'TSAnyKeyword').map((node) => violation(file, node, 'must not use the type any'))
  const comments = file.text.split('\n').flatMap((text, index) => {
    const found = /@ts-(?:ignore|nocheck|expect-error)/.exec(text)
    return found === null ? [] : [{ path: file.path, line: index + 1, message: `must not say ${found[0]}` }]
  })
  return [...anys, ...comments]
}

function nameViolations({ path }: ParsedFile): readonly Violation[] {
  const folders = posix.dirname(path).split('/')
  const name = posix.basename(path, '.ts')
  const vague = [...folders, name].find((part) => /^(?:utils?|helpers?|common|misc|index)$/.test(part))
  if (vague !== undefined) return [{ path, line: 1, message: `must say what it holds, "${vague}" does not` }]
  return /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) ? [] : [{ path, line: 1, message: 'must be named in kebab-case' }]
}

/** A file that declares nothing and only hands on, and every `export *`. */
function barrelViolations(file: ParsedFile): readonly Violation[] {
  const all = at(file, 'ExportAllDeclaration').map((node) => violation(file, node, 'must not use export *'))
  const handsOn = (node: SyntaxNode): boolean =>
    node.type === 'ImportDeclaration' ||
    node.type === 'ExportAllDeclaration' ||
    (node.type === 'ExportNamedDeclaration' && node.declaration === null)
  const isBarrel = file.statements.some((node) => node.type.startsWith('Export')) && file.statements.every(handsOn)
  return isBarrel ? [...all, { path: file.path, line: 1, message: 'is a barrel: it only exports again' }] : all
}

function environmentViolations(file: ParsedFile): readonly Violation[] {
  if (file.path === ONLY_READER_OF_ENVIRONMENT) return []
  const message = `must not read the environment; ${ONLY_READER_OF_ENVIRONMENT} does`
  const reads = file.nodes.filter(({ node }) => isMember(node, 'process', 'env') || isEnvironmentPattern(node))
  const imports = file.imports.filter(
    ({ specifier, names }) =>
      /^(?:node:)?process$/.test(specifier) && names.some((name) => name === 'env' || name === '*'),
  )
  return [
    ...reads.map(({ node }) => violation(file, node, message)),
    ...imports.map(({ line }) => ({ path: file.path, line, message })),
  ]
}

/** `const { env } = process` */
function isEnvironmentPattern(node: SyntaxNode): boolean {
  if (node.type !== 'VariableDeclarator') return false
  return nameOf(node.init) === 'process' && typeOf(node.id) === 'ObjectPattern'
}

function impurities(file: ParsedFile): readonly Violation[] {
  const effects = file.nodes.flatMap((visited) => {
    const { node } = visited
    const effect = effectOf(visited)
    return effect === null ? [] : [violation(file, node, `is pure and must not use ${effect}`)]
  })
  const chance = file.imports
    .filter(({ specifier }) => specifier === 'node:crypto')
    .flatMap(({ names, line }) =>
      names.filter((name) => !/^(?:hash|create(?:Hash|Hmac))$/.test(name)).map((name) => [name, line]),
    )
    .map(([name, line]) => ({
      path: file.path,
      line: Number(line),
      message: `is pure and must not use ${name} of node:crypto`,
    }))
  return [...effects, ...chance]
}

function effectOf({ node, parent }: VisitedNode): string | null {
  if (isMember(node, 'Date', 'now')) return 'Date.now'
  if (isMember(node, 'Math', 'random')) return 'Math.random'
  if (node.type === 'NewExpression' && nameOf(node.callee) === 'Date' && isEmpty(node.arguments)) return 'new Date()'
  const name = nameOf(node)
  return name !== null && EFFECTS.has(name) && isReference(parent) ? name : null
}

/** Whether an identifier in this place is a variable that is used, and not the name of a property or of a type's part. */
function isReference(parent: VisitedNode['parent']): boolean {
  if (parent === null) return true
  const { node, key } = parent
  if (node.computed === true) return true
  if (key === 'property') return node.type !== 'MemberExpression'
  if (key === 'key') return node.shorthand === true
  return !/^(?:Import|Export|TS)/.test(node.type)
}

function isMember(node: SyntaxNode, objectName: string, propertyName: string): boolean {
  if (node.type !== 'MemberExpression' || nameOf(node.object) !== objectName) return false
  return nameOf(node.property) === propertyName || literalOf(node.property) === propertyName
}

const at = (file: ParsedFile, type: string): readonly SyntaxNode[] =>
  file.nodes.map(({ node }) => node).filter((node) => node.type === type)

const violation = (file: ParsedFile, node: SyntaxNode, message: string): Violation => ({
  path: file.path,
  line: file.lineOf(node),
  message,
})

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const field = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[key] : undefined

const typeOf = (value: unknown): unknown => field(value, 'type')
const literalOf = (value: unknown): unknown => field(value, 'value')

function nameOf(value: unknown): string | null {
  const name = typeOf(value) === 'Identifier' ? field(value, 'name') : null
  return typeof name === 'string' ? name : null
}
