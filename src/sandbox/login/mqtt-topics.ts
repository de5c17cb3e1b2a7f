/** Of UTF-8, and levels: a broker closes the connection of an MQTT client that goes beyond either. */
const MAX_TOPIC_BYTES = 250
const MAX_TOPIC_LEVELS = 128

const isTooLong = (topic: string): boolean =>
  Buffer.byteLength(topic) > MAX_TOPIC_BYTES || topic.split('/').length > MAX_TOPIC_LEVELS

/** A topic that a message may be published to: no wildcards (MQTT 3.1.1, 3.3.2.1). */
export const isTopicName = (topic: string): boolean => /^[^+#\0]+$/.test(topic) && !isTooLong(topic)

/** `too-long` costs the connection, whatever the version. */
export type FilterProblem = 'too-long' | 'malformed' | 'shared'

/** `+` and `#` stand for whole levels, `#` for the last ones only (MQTT 3.1.1, 4.7.1). */
export function filterProblem(filter: string): FilterProblem | null {
  if (isTooLong(filter)) return 'too-long'
  if (filter === '' || filter.includes('\0')) return 'malformed'
  if (filter.startsWith('$share/')) return 'shared'
  const levels = filter.split('/')
  const isWhole = (level: string, index: number) =>
    !/[+#]/.test(level) || level === '+' || (level === '#' && index === levels.length - 1)
  return levels.every(isWhole) ? null : 'malformed'
}

/** The level above `#`, which MQTT's wildcard stands for as well and that of SMF does not; null without one. */
export const parentOf = (filter: string): string | null => (filter.endsWith('/#') ? filter.slice(0, -2) : null)
