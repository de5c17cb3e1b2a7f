/** A version as semver.org 2.0.0 defines it. */
export const SEMANTIC_VERSION =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?$/

/**
 * Orders versions, older first: semantic versions by precedence, other text by its numbers and letters, before every
 * semantic version. Versions of equal precedence are ordered as text, so that the order is total.
 */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [SEMANTIC_VERSION.exec(one), SEMANTIC_VERSION.exec(other)]
  if (left === null || right === null) {
    if (left === null && right === null)
      return one.localeCompare(other, 'en', { numeric: true }) || compareText(one, other)
    return left === null ? -1 : 1
  }
  for (const position of [1, 2, 3]) {
    const difference = compareNumbers(left[position] ?? '', right[position] ?? '')
    if (difference !== 0) return difference
  }
  return comparePreRelease(left[4], right[4]) || compareText(one, other)
}

export function newestVersion(versions: readonly string[]): string | undefined {
  return versions.toSorted(compareVersions).at(-1)
}

/** A pre-release comes before its release; a longer list of equal identifiers comes after a shorter one. */
function comparePreRelease(one: string | undefined, other: string | undefined): number {
  if (one === other) return 0
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1
  const [left, right] = [one.split('.'), other.split('.')]
  for (const [position, identifier] of left.entries()) {
    const counterpart = right[position]
    if (counterpart === undefined) return 1
    const difference = compareIdentifiers(identifier, counterpart)
    if (difference !== 0) return difference
  }
  return left.length - right.length
}

function compareIdentifiers(one: string, other: string): number {
  const [oneIsNumber, otherIsNumber] = [/^\d+$/.test(one), /^\d+$/.test(other)]
  if (oneIsNumber && otherIsNumber) return compareNumbers(one, other)
  if (oneIsNumber !== otherIsNumber) return oneIsNumber ? -1 : 1
  return compareText(one, other)
}

/** Digits without leading zeros, of any length. */
const compareNumbers = (one: string, other: string): number => one.length - other.length || compareText(one, other)
const compareText = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
