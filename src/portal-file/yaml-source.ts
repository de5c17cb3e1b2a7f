import {
  type CST,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Parser,
  parseDocument,
  visit,
} from 'yaml'
import type { Problem } from '../domain/errors.ts'
import type { JsonValue } from '../domain/portal-file.ts'

/** A place in a document: keys and positions from its root. */
export type Path = readonly (string | number)[]

/** A YAML or JSON document with the lines it was read from. */
export interface YamlSource {
  readonly file: string
  readonly value: JsonValue
  /** 1-based line of the key or item at a path; of the nearest thing around it when there is none. */
  lineOf(path: Path): number
  /** A scalar as it is written, such as `1.0` for the number 1; undefined when there is no scalar. */
  scalarText(path: Path): string | undefined
}

/** `brokers[0].management.url` */
export function formatPath(path: Path): string {
  return path
    .map((part, position) => {
      if (typeof part === 'number') return `[${part}]`
      const text = /^[$A-Za-z0-9_-]+$/.test(part) ? part : JSON.stringify(part)
      return position === 0 ? text : `.${text}`
    })
    .join('')
}

/** The other way round, for paths whose keys are plain words. */
export const parsePath = (text: string): Path =>
  [...text.matchAll(/\[(\d+)\]|([^.[\]]+)/g)].map(([, position, key]) => (key === undefined ? Number(position) : key))

export function problemAt(source: YamlSource, path: Path, message: string): Problem {
  return { message, path: formatPath(path), file: source.file, line: source.lineOf(path) }
}

/** What a person writes is far from these; they keep recursion and memory bounded. */
const MAX_DEPTH = 200
/** Of characters and values. */
const MAX_EXPANDED_SIZE = 32 * 1024 * 1024

export type YamlResult =
  | { readonly ok: true; readonly source: YamlSource }
  | { readonly ok: false; readonly problems: readonly Problem[] }

/** Parses YAML 1.2, of which JSON is a part. Messages hold no excerpt of the text, which may hold secrets. */
export function parseYaml(file: string, text: string): YamlResult {
  const lines = new LineCounter()
  try {
    // Composing recurses, and a text that is nested deeply enough ends the process, so the depth is read first.
    if (isNestedDeeper(text, MAX_DEPTH)) return tooMuch(file, `The document is nested deeper than ${MAX_DEPTH} levels`)
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true, uniqueKeys: true })
    const problems = [...document.errors, ...document.warnings].map((error) => ({
      message: withoutExcerpt(error.message),
      file,
      line: lines.linePos(error.pos[0]).line,
    }))
    const aliases = problems.length > 0 ? [] : unresolvedAliases(document)
    for (const offset of aliases) {
      problems.push({ message: 'The anchor of the alias is not there', file, line: lines.linePos(offset).line })
    }
    if (problems.length > 0) return { ok: false, problems }
    const expanded: unknown = document.toJS({ maxAliasCount: 100 })
    if (!(expandedSize(expanded, new Map()) <= MAX_EXPANDED_SIZE)) {
      return tooMuch(file, 'The document is too large once its aliases are followed')
    }
    const value: JsonValue = JSON.parse(JSON.stringify(expanded) ?? 'null')
    if (isDeeper(value, MAX_DEPTH))
      return tooMuch(file, 'The document is nested too deeply once its aliases are followed')
    return { ok: true, source: toSource(file, value, document, lines) }
  } catch (error) {
    const message =
      error instanceof RangeError ? 'The document is nested too deeply' : 'The document cannot be expanded'
    const detail = error instanceof ReferenceError ? `: ${error.message}` : ''
    return tooMuch(file, `${message}${detail}`)
  }
}

/** The library appends what it stumbled over to some messages: a secret that begins with `*` or `!`, for one. */
const withoutExcerpt = (message: string): string => message.replace(/(?<!The): .*$/s, '')

/** Offsets of aliases without an anchor before them. */
function unresolvedAliases(document: Document): readonly number[] {
  const anchors = new Set<string>()
  const offsets: number[] = []
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) {
        if (!anchors.has(node.source)) offsets.push(node.range?.[0] ?? 0)
      } else if (node.anchor !== undefined) anchors.add(node.anchor)
    },
  })
  return offsets
}

const tooMuch = (file: string, message: string): YamlResult => ({ ok: false, problems: [{ message, file, line: 1 }] })

/** Reads the syntax without recursion; brackets in text do not count. */
function isNestedDeeper(text: string, depth: number): boolean {
  const waiting: { readonly token: CST.Token; readonly level: number }[] = []
  for (const document of new Parser().parse(text)) {
    waiting.push({ token: document, level: 0 })
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { token, level } = next
      if (level > depth) return true
      if (token.type === 'document' && token.value) waiting.push({ token: token.value, level })
      if (!('items' in token)) continue
      for (const { key, value } of token.items) {
        if (key) waiting.push({ token: key, level: level + 1 })
        if (value) waiting.push({ token: value, level: level + 1 })
      }
    }
  }
  return false
}

/** Counts what an alias stands for at each of its places, in one visit each; a value inside itself is endless. */
function expandedSize(value: unknown, sizes: Map<object, number>): number {
  if (typeof value === 'string') return value.length + 1
  if (typeof value !== 'object' || value === null) return 1
  const known = sizes.get(value)
  if (known !== undefined) return known
  sizes.set(value, Number.POSITIVE_INFINITY)
  let size = 1
  for (const [key, entry] of Object.entries(value)) size += key.length + expandedSize(entry, sizes)
  sizes.set(value, size)
  return size
}

function isDeeper(value: JsonValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((entry) => isDeeper(entry, depth - 1))
}

function toSource(file: string, value: JsonValue, document: Document, lines: LineCounter): YamlSource {
  const lineOfNode = (node: Node): number => (node.range ? lines.linePos(node.range[0]).line : 1)
  const walk = (path: Path): { readonly line: number; readonly node: Node | null } => {
    let node: Node | null = document.contents
    let line = node === null ? 1 : lineOfNode(node)
    for (const part of path) {
      const step = child(document, node, part)
      if (step === null) return { line, node: null }
      line = lineOfNode(step.place)
      node = step.node
    }
    return { line, node }
  }
  return {
    file,
    value,
    lineOf: (path) => walk(path).line,
    scalarText: (path) => {
      const { node } = walk(path)
      const resolved = isAlias(node) ? node.resolve(document) : node
      return isScalar(resolved) ? (resolved.source ?? String(resolved.value)) : undefined
    },
  }
}

/** The node below a key or position, and the node whose line a person looks for: the key, or the item. */
function child(
  document: Document,
  parent: Node | null,
  part: string | number,
): { readonly place: Node; readonly node: Node | null } | null {
  const container = isAlias(parent) ? parent.resolve(document) : parent
  if (isSeq(container)) {
    const item = container.items[Number(part)]
    return isNode(item) ? { place: item, node: item } : null
  }
  if (!isMap(container)) return null
  const pair = container.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
  if (pair === undefined || !isNode(pair.key)) return null
  return { place: pair.key, node: isNode(pair.value) ? pair.value : null }
}
