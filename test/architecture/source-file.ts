import { readdirSync, readFileSync } from 'node:fs'
import { parseAst } from 'vitest/node'

/** A file of the project, by its path from the root of the repository, with `/`. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** A node of the syntax tree, ESTree with TypeScript's own nodes. */
export interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

export interface VisitedNode {
  readonly node: SyntaxNode
  /** The node around it and the key that it has there; null for the root. */
  readonly parent: { readonly node: SyntaxNode; readonly key: string } | null
}

export interface ImportedModule {
  /** As written: `../domain/ids.ts`, `node:crypto`. */
  readonly specifier: string
  /** Nothing of it is there at run time. */
  readonly typeOnly: boolean
  /** Names that are taken from it; `*` for all. */
  readonly names: readonly string[]
  readonly line: number
}

export interface ParsedFile extends SourceFile {
  readonly nodes: readonly VisitedNode[]
  /** The statements of the module. */
  readonly statements: readonly SyntaxNode[]
  readonly imports: readonly ImportedModule[]
  lineOf(node: SyntaxNode): number
}

const REPOSITORY = new URL('../../', import.meta.url)

/** All TypeScript files below the folders, sorted by path. */
export function readSourceFiles(folders: readonly string[]): readonly SourceFile[] {
  return folders
    .flatMap((folder) => {
      const entries = readdirSync(new URL(`${folder}/`, REPOSITORY), { recursive: true, encoding: 'utf8' })
      return entries.filter((entry) => entry.endsWith('.ts')).map((entry) => `${folder}/${entry.replaceAll('\\', '/')}`)
    })
    .sort()
    .map((path) => ({ path, text: readFileSync(new URL(path, REPOSITORY), 'utf8') }))
}

/** Throws when the text is no TypeScript, so that no file passes because it could not be read. */
export function parseSourceFile(file: SourceFile): ParsedFile {
  const root: unknown = parseAst(file.text, { lang: 'ts' }, file.path)
  if (!isNode(root)) throw new TypeError(`${file.path} has no syntax tree`)
  const lineOf = (node: SyntaxNode): number => file.text.slice(0, node.start).split('\n').length
  const nodes = [...walk(root, null)]
  const imports = nodes.flatMap(({ node }) => importOf(node, () => lineOf(node)))
  return { ...file, nodes, statements: nodesOf(root.body), imports, lineOf }
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

export const nodesOf = (value: unknown): readonly SyntaxNode[] => (Array.isArray(value) ? value.filter(isNode) : [])

function* walk(node: SyntaxNode, parent: VisitedNode['parent']): Generator<VisitedNode> {
  yield { node, parent }
  for (const [key, value] of Object.entries(node)) {
    const children = isNode(value) ? [value] : nodesOf(value)
    for (const child of children) yield* walk(child, { node, key })
  }
}

function importOf(node: SyntaxNode, lineOf: () => number): readonly ImportedModule[] {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportNamedDeclaration': {
      if (!isNode(node.source)) return []
      const specifiers = nodesOf(node.specifiers)
      const isType = (each: SyntaxNode) => each.importKind === 'type' || each.exportKind === 'type'
      const typeOnly = isType(node) || (specifiers.length > 0 && specifiers.every(isType))
      return [{ specifier: textOf(node.source), typeOnly, names: specifiers.map(importedName), line: lineOf() }]
    }
    case 'ExportAllDeclaration':
      return [{ specifier: textOf(node.source), typeOnly: node.exportKind === 'type', names: ['*'], line: lineOf() }]
    case 'ImportExpression':
      return [{ specifier: textOf(node.source), typeOnly: false, names: ['*'], line: lineOf() }]
    case 'TSImportType':
      return [{ specifier: textOf(node.source ?? node.argument), typeOnly: true, names: ['*'], line: lineOf() }]
    default:
      return []
  }
}

/** A computed specifier has no text; it is then one that no rule allows. */
function textOf(source: unknown): string {
  if (!isNode(source)) return '(computed)'
  if (source.type === 'TSLiteralType') return textOf(source.literal)
  return typeof source.value === 'string' ? source.value : '(computed)'
}

function importedName(specifier: SyntaxNode): string {
  if (specifier.type === 'ImportDefaultSpecifier') return 'default'
  const name = specifier.type === 'ExportSpecifier' ? specifier.local : specifier.imported
  return isNode(name) ? String(name.name ?? name.value) : '*'
}
