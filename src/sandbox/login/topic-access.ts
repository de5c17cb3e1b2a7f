import type { StoredObject } from '../object-collection.ts'

export type Direction = 'publish' | 'subscribe'

/** Whether an ACL profile lets a client publish to a topic, or subscribe to a topic filter, both in SMF syntax. */
export function aclAllows(aclProfile: StoredObject, direction: Direction, topic: string): boolean {
  const allowedByDefault = aclProfile.values[`${direction}TopicDefaultAction`] === 'allow'
  const exceptions = aclProfile.children?.get(`${direction}TopicExceptions`)
  for (const key of exceptions?.keys() ?? []) {
    const comma = key.indexOf(',')
    const text = key.slice(comma + 1)
    const pattern = key.slice(0, comma) === 'mqtt' ? fromMqtt(text) : text
    if (covers(pattern, topic)) return !allowedByDefault
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
 * Whether every topic that `topic` stands for is one that `pattern` stands for. `*` at the end of a level is any text
 * there, at least one character when it is the whole level's start; a last `>` is one or more levels.
 */
export function covers(pattern: string, topic: string): boolean {
  const wanted = pattern.split('/')
  const given = topic.split('/')
  for (const [index, level] of wanted.entries()) {
    if (level === '>' && index === wanted.length - 1) return given.length > index
    const other = given[index]
    if (other === undefined || (other === '>' && index === given.length - 1)) return false
    const covered = level.endsWith('*') ? other.startsWith(level.slice(0, -1)) : other === level
    if (!covered) return false
  }
  return given.length === wanted.length
}
