import { createHash } from 'node:crypto'

/** Broker limits are from the SEMP v2 configuration description, the others from the APIM API description. */
export const ACL_PROFILE_NAME_MAX_LENGTH = 32
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'

/**
 * The ACL profile of a registration: its id where the broker takes it as it is, else `~` and a 128-bit hash of it.
 * No id begins with `~`, and an id that has one after its `@` is never used as it is,
 * so two registrations never share a name.
 */
export function aclProfileName(registrationId: string): string {
  const fits =
    registrationId.length <= ACL_PROFILE_NAME_MAX_LENGTH && /^[A-Za-z0-9_-]+(@[A-Za-z0-9_.-]*)?$/.test(registrationId)
  return fits && registrationId !== 'default' ? registrationId : `~${hash128('acl-profile', [registrationId])}`
}

/** What a queue belongs to; `eventApiId` only for a queue per Event API. */
export interface QueueNameParts {
  readonly accountId: string
  readonly registrationId: string
  readonly accessRequestId: string
  readonly eventApiId?: string
  /** Where every client of the message VPN may consume, a stored random text keeps the name unguessable. */
  readonly nonce?: string
}

/** 34 characters, derived from all parts together: nobody can choose ids so that two queues meet. */
export function queueName(parts: QueueNameParts): string {
  const { accountId, registrationId, accessRequestId, eventApiId = null, nonce = null } = parts
  return `keymesh-${hash128('queue', [accountId, registrationId, accessRequestId, eventApiId, nonce])}`
}

/** JSON keeps the parts apart, whatever characters they hold. 26 characters of base32, lower case. */
function hash128(purpose: string, parts: readonly (string | null)[]): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([purpose, ...parts]))
    .digest()
    .subarray(0, 16)
  let bits = BigInt(`0x${bytes.toString('hex')}`) << 2n
  let text = ''
  for (let position = 0; position < 26; position += 1) {
    text = `${BASE32.charAt(Number(bits & 31n))}${text}`
    bits >>= 5n
  }
  return text
}

// Problems: a sentence that follows the name of the thing ("… must be …"), or null when the text is good.

/** Control characters (C0, DEL, C1) and lone surrogates: no broker name or database text may hold them. */
export function hasUnsafeCharacters(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /[\u0000-\u001f\u007f-\u009f]/.test(text) || !text.isWellFormed()
}

/** Registration, access request and source ids, which the API's client chooses. */
export function externalIdProblem(text: string): string | null {
  if (text.length < 2 || text.length > 64) return `must be 2 to 64 characters long, it has ${text.length}`
  if (hasUnsafeCharacters(text)) return 'must not contain control characters'
  if (!/^[a-zA-Z0-9_-]*(@[ |\S]*)?$/.test(text)) {
    return 'may contain letters, digits, `_` and `-`, then optionally `@` and more text without line breaks or tabs'
  }
  return null
}

/** Ids of the catalogue: environments, meshes, brokers, domains, Event APIs, products and plans. */
export function catalogueIdProblem(text: string): string | null {
  if (text.length < 2 || text.length > 64) return `must be 2 to 64 characters long, it has ${text.length}`
  if (!/^[a-zA-Z0-9]*$/.test(text)) return 'may contain letters and digits only'
  return null
}

/** Names for people. */
export function nameProblem(text: string): string | null {
  if (text.length < 1 || text.length > 128) return `must be 1 to 128 characters long, it has ${text.length}`
  if (hasUnsafeCharacters(text)) return 'must not contain control characters'
  return null
}

/** A client username as a broker takes it; `default` and `#…` are the broker's own. */
export function clientUsernameProblem(text: string): string | null {
  if (text.length < 1 || text.length > 189) return `must be 1 to 189 characters long, it has ${text.length}`
  if (hasUnsafeCharacters(text)) return 'must not contain control characters'
  if (/[?*]/.test(text)) return 'must not contain `?` or `*`'
  if (text === 'default' || text.startsWith('#'))
    return 'is reserved by the broker: `default` and names that begin with `#`'
  return null
}

/** A consumer key that a client supplies. */
export function consumerKeyProblem(text: string): string | null {
  return clientUsernameProblem(text) ?? suppliedCredentialProblem(text)
}

/** A consumer secret that a client supplies. The answer never contains the secret. */
export function consumerSecretProblem(text: string): string | null {
  return suppliedCredentialProblem(text)
}

function suppliedCredentialProblem(text: string): string | null {
  if (text.length < 8 || text.length > 64) return `must be 8 to 64 characters long, it has ${text.length}`
  if (!/^[a-zA-Z0-9_-]*$/.test(text)) return 'may contain letters, digits, `_` and `-` only'
  return null
}

export function msgVpnNameProblem(text: string): string | null {
  if (text.length < 1 || text.length > 32) return `must be 1 to 32 characters long, it has ${text.length}`
  if (hasUnsafeCharacters(text)) return 'must not contain control characters'
  if (/[?*]/.test(text)) return 'must not contain `?` or `*`'
  return null
}
