import { createDecipheriv, type KeyObject, webcrypto } from 'node:crypto'
import { FlattenedEncrypt } from 'jose'
import { z } from 'zod'
import { KeymeshError } from '../domain/errors.ts'
import type { SealPlace } from '../domain/seal-place.ts'
import { Secret } from '../domain/secret.ts'
import type { KeyRing } from './key-ring.ts'

export interface Sealer {
  /** Id of the key that seals. */
  readonly currentKid: string
  /** The sealed text: JSON of a flattened JWE without its `aad`, which a reader recomputes from the place. */
  seal(secret: Secret, place: SealPlace): Promise<string>
  /** Throws KEY_MISSING when the ring lacks its key, SECRET_UNREADABLE when anything about it was changed. */
  open(sealed: string, place: SealPlace): Promise<Secret>
  /** The same secret under the current key; null when it is under that already. Throws as `open` does. */
  reseal(sealed: string, place: SealPlace): Promise<string | null>
}

const sealedSchema = z.strictObject({
  protected: z.string(),
  iv: z.string(),
  ciphertext: z.string(),
  tag: z.string(),
})
type Sealed = z.infer<typeof sealedSchema>

const headerSchema = z.strictObject({ alg: z.literal('dir'), enc: z.literal('A256GCM'), kid: z.string() })

const IV_BYTES = 12
const TAG_BYTES = 16

export function createSealer(ring: KeyRing): Sealer {
  const bytes = currentKey(ring).export()
  const keysByHeader = new Map([...ring.keys].map(([kid, key]) => [encodedHeader(kid), key]))
  const currentHeader = encodedHeader(ring.current)
  let sealingKey: Promise<webcrypto.CryptoKey> | undefined

  async function seal(secret: Secret, place: SealPlace): Promise<string> {
    const text = secret.reveal()
    // Encoding would silently replace it, and what opens later would be another secret.
    if (!text.isWellFormed()) throw notText(place)
    sealingKey ??= webcrypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt'])
    const jwe = await new FlattenedEncrypt(new TextEncoder().encode(text))
      .setProtectedHeader(header(ring.current))
      .setAdditionalAuthenticatedData(associatedData(place))
      .encrypt(await sealingKey)
    return format(
      sealedSchema.parse({ protected: jwe.protected, iv: jwe.iv, ciphertext: jwe.ciphertext, tag: jwe.tag }),
    )
  }

  async function open(text: string, place: SealPlace): Promise<Secret> {
    const sealed = parse(text, place)
    const key = keysByHeader.get(sealed.protected)
    if (key === undefined) throw keyMissing(sealed, place)
    return decrypt(sealed, key, place)
  }

  async function reseal(text: string, place: SealPlace): Promise<string | null> {
    const secret = await open(text, place)
    return parse(text, place).protected === currentHeader ? null : seal(secret, place)
  }

  return { currentKid: ring.current, seal, open, reseal }
}

function currentKey(ring: KeyRing): KeyObject {
  const key = ring.keys.get(ring.current)
  if (key === undefined) throw new Error('a key ring without its current key')
  return key
}

/** Id of the key that sealed it; null when the text is not a sealed secret. */
export function kidOf(sealed: string): string | null {
  const parsed = parseJson(sealed)
  return parsed === null ? null : kidOfHeader(parsed.protected)
}

/** A JSON array of strings and a number: two places never have the same one. */
function associatedData(place: SealPlace): Uint8Array {
  return new TextEncoder().encode(
    JSON.stringify(['keymesh', place.accountId, place.table, place.rowId, place.column, place.version]),
  )
}

/**
 * RFC 7516 decryption for the one header that this file writes. An apply opens thousands of secrets, and this costs a
 * fraction of the general way through the thread pool.
 */
function decrypt(sealed: Sealed, key: KeyObject, place: SealPlace): Secret {
  const iv = Buffer.from(sealed.iv, 'base64url')
  const tag = Buffer.from(sealed.tag, 'base64url')
  if (iv.length !== IV_BYTES || tag.length !== TAG_BYTES) throw unreadable(place)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
    const data = Buffer.from(associatedData(place)).toString('base64url')
    decipher.setAAD(Buffer.from(`${sealed.protected}.${data}`, 'ascii'))
    decipher.setAuthTag(tag)
    const ciphertext = Buffer.from(sealed.ciphertext, 'base64url')
    return new Secret(Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8'))
  } catch {
    throw unreadable(place)
  }
}

const header = (kid: string) => ({ alg: 'dir', enc: 'A256GCM', kid })

function encodedHeader(kid: string): string {
  return Buffer.from(JSON.stringify(header(kid))).toString('base64url')
}

function kidOfHeader(encoded: string): string | null {
  try {
    const parsed = headerSchema.safeParse(JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8')))
    return parsed.success ? parsed.data.kid : null
  } catch {
    return null
  }
}

function format(sealed: Sealed): string {
  return JSON.stringify({
    protected: sealed.protected,
    iv: sealed.iv,
    ciphertext: sealed.ciphertext,
    tag: sealed.tag,
  })
}

function parse(text: string, place: SealPlace): Sealed {
  const sealed = parseJson(text)
  if (sealed === null) throw unreadable(place)
  return sealed
}

/** Null unless it is written exactly as `format` writes it: white space and unused bits of base64 are changes too. */
function parseJson(text: string): Sealed | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const parsed = sealedSchema.safeParse(value)
  if (!parsed.success) return null
  const canonical = format({
    protected: recode(parsed.data.protected),
    iv: recode(parsed.data.iv),
    ciphertext: recode(parsed.data.ciphertext),
    tag: recode(parsed.data.tag),
  })
  return canonical === text ? parsed.data : null
}

const recode = (encoded: string): string => Buffer.from(encoded, 'base64url').toString('base64url')

const placeName = (place: SealPlace): string =>
  `${place.table}.${place.column} of ${place.rowId} in account ${place.accountId}, version ${place.version}`

function keyMissing(sealed: Sealed, place: SealPlace): KeymeshError {
  const kid = kidOfHeader(sealed.protected)
  if (kid === null) return unreadable(place)
  return new KeymeshError({
    code: 'KEY_MISSING',
    fate: 'stop',
    message: `The secret in ${placeName(place)} is sealed with key ${kid}, which the key ring does not have.`,
    hint: 'Nothing is lost: give the key ring that holds that key and start again.',
  })
}

function unreadable(place: SealPlace): KeymeshError {
  return new KeymeshError({
    code: 'SECRET_UNREADABLE',
    fate: 'stop',
    message: `The secret in ${placeName(place)} cannot be opened: its key is a wrong one, or the row was changed by other means.`,
    hint: 'Check that the key ring is the one of this database; else restore the row, or set a new secret. Nothing was changed.',
  })
}

function notText(place: SealPlace): KeymeshError {
  return new KeymeshError({
    code: 'SECRET_NOT_TEXT',
    fate: 'stop',
    message: `The secret for ${placeName(place)} is not valid Unicode text.`,
    hint: 'Give a secret without half characters (lone surrogates).',
  })
}
