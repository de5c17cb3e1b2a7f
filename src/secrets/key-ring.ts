import { createHash, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'
import { Secret } from '../domain/secret.ts'

const KEY_BYTES = 32
const KID = /^[A-Za-z0-9._-]{1,64}$/

/**
 * The keys that seal secrets. All of them open, the current one seals. Rotation: a new key is added to every replica's ring
 * (it only opens), then promoted, then everything is resealed, then the old one is removed.
 */
export interface KeyRing {
  /** Id of the key that seals. */
  readonly current: string
  readonly keys: ReadonlyMap<string, KeyObject>
}

const jsonSchema = z.strictObject({ current: z.string(), keys: z.record(z.string(), z.string()) })

/**
 * Reads a ring in one of two forms; keys are 32 bytes in base64url or base64:
 * - `k2:KEY,k1:KEY`: the first is the current one
 * - `{"current":"k2","keys":{"k2":"KEY","k1":"KEY"}}`
 * Throws KEY_RING_INVALID, which names `source` and the key id, never a key.
 */
export function parseKeyRing(text: Secret, source: string): KeyRing {
  const written = text.reveal().trim()
  const { current, entries } = written.startsWith('{') ? fromJson(written, source) : fromList(written, source)
  const keys = new Map<string, KeyObject>()
  for (const [kid, encoded] of entries) {
    if (!KID.test(kid))
      throw invalid(source, 'an id of a key is not 1 to 64 letters, digits, dots, dashes or underscores')
    if (keys.has(kid)) throw invalid(source, `key ${kid} is given twice`)
    keys.set(kid, decodeKey(kid, encoded, source))
  }
  if (!keys.has(current)) throw invalid(source, 'the current key is not among its keys')
  return { current, keys }
}

/** The JSON form of `parseKeyRing`. */
export function formatKeyRing(ring: KeyRing): Secret {
  const keys = Object.fromEntries([...ring.keys].map(([kid, key]) => [kid, key.export().toString('base64url')]))
  return new Secret(`${JSON.stringify({ current: ring.current, keys }, null, 2)}\n`)
}

/** A ring of one new key. */
export function newKeyRing(): KeyRing {
  const { kid, key } = newKey()
  return { current: kid, keys: new Map([[kid, key]]) }
}

/** The id is a digest of the key, so that another key never answers to it by mistake. */
export function newKey(): { readonly kid: string; readonly key: KeyObject } {
  const bytes = randomBytes(KEY_BYTES)
  const kid = `k-${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`
  return { kid, key: createSecretKey(bytes) }
}

/** The new key opens only, until it is promoted. */
export function addKey(ring: KeyRing, kid: string, key: KeyObject): KeyRing {
  if (ring.keys.has(kid)) throw refused(`Key ${kid} is in the ring already.`, 'Choose another id.')
  return { ...ring, keys: new Map([...ring.keys, [kid, key]]) }
}

/** From now on `kid` seals. */
export function promoteKey(ring: KeyRing, kid: string): KeyRing {
  if (!ring.keys.has(kid)) throw refused(`Key ${kid} is not in the ring.`, 'Add it to the ring of every replica first.')
  return { ...ring, current: kid }
}

/** Only after every secret is resealed: what this key sealed cannot be opened any more. */
export function removeKey(ring: KeyRing, kid: string): KeyRing {
  if (kid === ring.current) throw refused(`Key ${kid} seals new secrets.`, 'Promote another key and reseal first.')
  return { ...ring, keys: new Map([...ring.keys].filter(([other]) => other !== kid)) }
}

interface WrittenRing {
  readonly current: string
  readonly entries: readonly (readonly [kid: string, encoded: string])[]
}

function fromJson(written: string, source: string): WrittenRing {
  let value: unknown
  try {
    value = JSON.parse(written)
  } catch {
    // The parser's own message quotes its input, which holds the keys.
    throw invalid(source, 'it begins like JSON and is not: it may be cut short')
  }
  const parsed = jsonSchema.safeParse(value)
  if (!parsed.success) throw invalid(source, 'it is not of the form {"current":"k1","keys":{"k1":"…"}}')
  return { current: parsed.data.current, entries: Object.entries(parsed.data.keys) }
}

function fromList(written: string, source: string): WrittenRing {
  if (written === '') throw invalid(source, 'it is empty')
  const entries = written.split(',').map((item): [string, string] => {
    const colon = item.indexOf(':')
    if (colon < 1) throw invalid(source, 'an entry is not of the form ID:KEY')
    return [item.slice(0, colon).trim(), item.slice(colon + 1).trim()]
  })
  return { current: entries[0]?.[0] ?? '', entries }
}

function decodeKey(kid: string, encoded: string, source: string): KeyObject {
  if (!/^[A-Za-z0-9_+/-]*={0,2}$/.test(encoded)) throw invalid(source, `key ${kid} is not base64url`)
  const bytes = Buffer.from(encoded, 'base64url')
  if (bytes.length !== KEY_BYTES) {
    throw invalid(source, `key ${kid} has ${bytes.length} bytes, not ${KEY_BYTES}: it may be cut short`)
  }
  return createSecretKey(bytes)
}

function invalid(source: string, problem: string): KeymeshError {
  return new KeymeshError({
    code: 'KEY_RING_INVALID',
    fate: 'stop',
    message: `The key ring in ${source} cannot be used: ${problem}.`,
    hint: 'Nothing was changed. Give the ring that sealed the secrets of this database, whole, as it was.',
  })
}

function refused(message: string, hint: string): KeymeshError {
  return new KeymeshError({ code: 'KEY_RING_CHANGE_REFUSED', fate: 'stop', message, hint })
}
