import type { Problem } from '../domain/errors.ts'
import type { JsonValue } from '../domain/portal-file.ts'
import type { Bundle } from './bundle-references.ts'
import { type Followed, follow } from './follow-references.ts'
import { isList, isMap, own } from './portal-file-references.ts'
import type { Path } from './yaml-source.ts'

const ERROR_SEVERITY = 0

/** Findings that do not change what the API is: examples, and payload formats that only their users understand. */
const WARNING_CODES = /^asyncapi2-message-examples|-unknown-schema-format/
const UNKNOWN_FORMAT = 'No schema parser registered'

/**
 * Validates a self-contained AsyncAPI document with the parser of the AsyncAPI project. It is slow to load, so it is
 * loaded on first use.
 */
export async function validateAsyncApi(
  bundle: Bundle,
): Promise<{ readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] }> {
  const { Parser } = await import('@asyncapi/parser')
  // A bundle refers to nothing outside itself. A resolver that threw would make the parser try its own, which fetch.
  const nothing = (schema: string) => ({ schema, order: 1, canRead: true, read: () => '{}' })
  const parser = new Parser({
    ruleset: { recommended: false },
    __unstable: { resolver: { cache: false, resolvers: ['file', 'http', 'https'].map(nothing) } },
  })
  const diagnostics = await parser.validate(JSON.stringify(bundle.root))
  const problems = new Map<string, Problem>()
  const warnings = new Map<string, Problem>()
  for (const { code, message, path, severity } of diagnostics) {
    const isUnknownFormat = message.startsWith(UNKNOWN_FORMAT)
    if (severity !== ERROR_SEVERITY && !isUnknownFormat) continue
    const problem = bundle.problemAt(followPath(bundle, path), message)
    const found = isUnknownFormat || WARNING_CODES.test(String(code)) ? warnings : problems
    found.set(JSON.stringify(problem), problem)
  }
  return { problems: [...problems.values()], warnings: [...warnings.values()] }
}

/** The parser reports a place as it is after resolving; this is where it was written. */
function followPath(bundle: Bundle, path: Path): Path {
  let value: JsonValue | undefined = bundle.root
  let here: Path = []
  for (const [position, part] of path.entries()) {
    const followed: Followed | null = value === undefined ? null : follow(bundle.root, value, here)
    if (followed === null || !followed.ok) return [...here, ...path.slice(position)]
    value = isList(followed.value)
      ? followed.value[Number(part)]
      : isMap(followed.value)
        ? own(followed.value, String(part))
        : undefined
    here = [...followed.path, isList(followed.value) ? Number(part) : part]
  }
  return here
}
