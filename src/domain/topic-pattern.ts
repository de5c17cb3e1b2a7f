import { hasUnsafeCharacters } from './names.ts'

/** Of UTF-8, for a topic on the broker. Its limit of 128 levels is out of reach, as no level may be empty. */
export const TOPIC_MAX_BYTES = 250
export const FILTER_VALUE_MAX_LENGTH = 128

/**
 * Why `text` may not become (part of) one topic level, or null. A `*` is a wildcard at the end of a level only, so it may
 * stand only there; `>` and a leading `!` would widen or invert what a topic matches, so neither may stand anywhere.
 */
export function levelTextProblem(text: string): string | null {
  if (hasUnsafeCharacters(text)) return 'contains a control character'
  const forbidden = /[/>!]/.exec(text)
  if (forbidden !== null) return `contains \`${forbidden[0]}\``
  if (text.slice(0, -1).includes('*')) return 'contains `*` before its end'
  return null
}

/** A value of a filter or of a parameter's enum; the message follows the value. */
export function topicValueProblem(value: string): string | null {
  if (value === '') return 'is empty'
  return levelTextProblem(value)
}

/** A filter value as a client may supply it. */
export function filterValueProblem(value: string): string | null {
  if (value.length > FILTER_VALUE_MAX_LENGTH) {
    return `has ${value.length} characters, ${FILTER_VALUE_MAX_LENGTH} are allowed`
  }
  return topicValueProblem(value)
}

/** A whole topic or topic subscription as it goes to the broker; the message follows the topic. */
export function topicProblem(topic: string): string | null {
  const bytes = Buffer.byteLength(topic)
  if (bytes > TOPIC_MAX_BYTES) return `has ${bytes} bytes, the broker takes ${TOPIC_MAX_BYTES}`
  if (topic.startsWith('#')) return 'begins with `#`, which the broker keeps for itself'
  for (const level of topic.split('/')) {
    // An SMF topic exception of an ACL profile cannot have an empty level.
    if (level === '') return 'has an empty level'
    const problem = levelTextProblem(level)
    if (problem !== null) return problem
  }
  return null
}

/** True when every text that `narrow` matches is matched by `wide`; both are literal or end in `*`. */
export function levelCovers(wide: string, narrow: string): boolean {
  return wide.endsWith('*') ? narrow.startsWith(wide.slice(0, -1)) : wide === narrow
}

/** True when every topic that `narrow` matches is matched by `wide`; neither has `>`. */
export function topicCovers(wide: string, narrow: string): boolean {
  const wideLevels = wide.split('/')
  const narrowLevels = narrow.split('/')
  return (
    wideLevels.length === narrowLevels.length &&
    wideLevels.every((level, position) => levelCovers(level, narrowLevels[position] ?? ''))
  )
}
