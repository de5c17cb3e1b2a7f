import type { StoredObject } from '../object-collection.ts'

export type Direction = 'publish' | 'subscribe'

/** Whether an ACL profile lets a client publish to a topic, or subscribe to a topic filter, both in SMF syntax. */
export function aclAllows(aclProfile: StoredObject, direction: Direction, topic: string): boolean {
  const allowedByDefault = aclProfile.values[`${direction}TopicDefaultAction`] === 'allow'
  const exceptions = aclProfile.children?.get(`${direction}TopicExceptions`)
  const isException = direction === 'publish' ? matches : covers
  for (const key of exceptions?.keys() ?? []) {
    const comma = key.indexOf(',')
    const text = key.slice(comma + 1)
    const pattern = key.slice(0, comma) === 'mqtt' ? fromMqtt(text) : text
    if (isException(pattern, topic)) return !allowedByDefault
  }
  return allowedByDefault
}

/** A broker keeps MQTT topics and filters in its own syntax: `+` is `*`, and a last `#` is `>`. */
export function fromMqtt(filter: string): string {
  const levels = filter.split('/').map((level) => (level === '+' ? '*' : level))
  if (levels.at(-1) === '#') levels[levels.length - 1] = '>'
  return levels.join('/')
}

/**
 * Whether a pattern stands for a topic that a message is published to, in which wildcards are text like any other.
 * `*` at the end of a level is any text there, none included; a last `>` is one or more levels.
 */
export function matches(pattern: string, topic: string): boolean {
  return standsFor(pattern.split('/'), topic.split('/'))
}

/** Whether every topic that `filter` stands for is one that `pattern` stands for. */
export function covers(pattern: string, filter: string): boolean {
  const wanted = pattern.split('/')
  const given = filter.split('/')
  // Many levels are covered by many levels only, which begin no later.
  if (given.at(-1) === '>' && (wanted.at(-1) !== '>' || wanted.length > given.length)) return false
  return standsFor(wanted, given)
}

/** A level that ends in `*` begins with no other text than what is before it, so one comparison serves both. */
function standsFor(wanted: readonly string[], given: readonly string[]): boolean {
  for (const [index, level] of wanted.entries()) {
    if (level === '>' && index === wanted.length - 1) return given.length > index
    const text = given[index]
    if (text === undefined) return false
    if (level.endsWith('*') ? !text.startsWith(level.slice(0, -1)) : text !== level) return false
  }
  return given.length === wanted.length
}
