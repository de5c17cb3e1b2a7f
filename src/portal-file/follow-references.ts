import type { Problem } from '../domain/errors.ts'
import type { JsonObject, JsonValue } from '../domain/portal-file.ts'
import type { Bundle } from './bundle-references.ts'
import { isList, isMap, own } from './portal-file-references.ts'
import type { Path } from './yaml-source.ts'

/** Values of a document once every reference in it is written out; validation takes time in proportion. */
const MAX_EXPANDED_VALUES = 100_000

export type Followed =
  | { readonly ok: true; readonly value: JsonValue; readonly path: Path }
  | { readonly ok: false; readonly problem: string }

/** What a value is once its references are followed, and where that stands in the bundle. */
export function follow(root: JsonObject, value: JsonValue, path: Path): Followed {
  return followSeen(root, value, path, new Set())
}

function followSeen(root: JsonObject, value: JsonValue, path: Path, seen: Set<string>): Followed {
  const reference = isMap(value) ? own(value, '$ref') : undefined
  if (typeof reference !== 'string') return { ok: true, value, path }
  if (seen.has(reference)) return { ok: false, problem: `The reference \`${reference}\` leads back to itself.` }
  seen.add(reference)
  let current: Followed = { ok: true, value: root, path: [] }
  for (const token of pointerTokens(reference)) {
    const parent = followSeen(root, current.value, current.path, seen)
    if (!parent.ok) return parent
    const child: JsonValue | undefined = isList(parent.value)
      ? parent.value[/^\d+$/.test(token) ? Number(token) : -1]
      : isMap(parent.value)
        ? own(parent.value, token)
        : undefined
    if (child === undefined) return { ok: false, problem: `The reference \`${reference}\` leads to nothing.` }
    current = { ok: true, value: child, path: [...parent.path, isList(parent.value) ? Number(token) : token] }
  }
  return followSeen(root, current.value, current.path, seen)
}

function pointerTokens(reference: string): readonly string[] {
  return reference
    .slice(1)
    .split('/')
    .slice(1)
    .map((token) => decodeToken(token).replaceAll('~1', '/').replaceAll('~0', '~'))
}

function decodeToken(token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}

/**
 * References that lead nowhere or only to each other, and a document that grows too large once they are followed. A
 * schema that contains itself is none of these.
 */
export function referenceTargetProblems(bundle: Bundle): readonly Problem[] {
  const problems: Problem[] = []
  const visit = (value: JsonValue, path: Path): void => {
    if (isList(value)) {
      for (const [position, item] of value.entries()) visit(item, [...path, position])
    } else if (isMap(value)) {
      if (typeof own(value, '$ref') === 'string') {
        const followed = follow(bundle.root, value, path)
        if (!followed.ok) problems.push(bundle.problemAt([...path, '$ref'], followed.problem))
      }
      for (const [key, entry] of Object.entries(value)) visit(entry, [...path, key])
    }
  }
  visit(bundle.root, [])
  if (problems.length === 0 && expandedValues(bundle.root) > MAX_EXPANDED_VALUES) {
    const message = `The document has more than ${MAX_EXPANDED_VALUES} values once its references are followed.`
    problems.push(bundle.problemAt([], message))
  }
  return problems
}

/** Counts each shared part wherever it is referred to, and a part inside itself once. */
function expandedValues(root: JsonObject): number {
  const sizes = new Map<JsonValue, number>()
  const sizeOf = (unfollowed: JsonValue): number => {
    const followed = follow(root, unfollowed, [])
    const value = followed.ok ? followed.value : null
    if (typeof value !== 'object' || value === null) return 1
    const known = sizes.get(value)
    if (known !== undefined) return known
    sizes.set(value, 1)
    let size = 1
    for (const entry of Object.values(value)) size += sizeOf(entry)
    sizes.set(value, size)
    return size
  }
  return sizeOf(root)
}
