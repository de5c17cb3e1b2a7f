import { CompactEncrypt, compactDecrypt, errors } from 'jose'
import { KeymeshError } from '../domain/errors.ts'
import { Secret } from '../domain/secret.ts'
import { formatKeyRing, type KeyRing, parseKeyRing } from './key-ring.ts'

const ALGORITHM = 'PBES2-HS512+A256KW'
const ENCRYPTION = 'A256GCM'
/** About half a second for each guess. */
const ITERATIONS = 600_000
const MIN_PASSPHRASE_CHARACTERS = 12

/** Null when it may seal a key ring; else what is wrong, for a person. */
export function passphraseProblem(passphrase: Secret): string | null {
  return [...passphrase.reveal()].length < MIN_PASSPHRASE_CHARACTERS
    ? `must be at least ${MIN_PASSPHRASE_CHARACTERS} characters long`
    : null
}

/** The whole ring under a passphrase: a compact JWE (RFC 7516, PBES2 as in RFC 7518 section 4.8). */
export async function sealKeyRing(ring: KeyRing, passphrase: Secret): Promise<string> {
  return await new CompactEncrypt(new TextEncoder().encode(formatKeyRing(ring).reveal()))
    .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION })
    .setKeyManagementParameters({ p2c: ITERATIONS })
    .encrypt(new TextEncoder().encode(passphrase.reveal()))
}

/** Throws PASSPHRASE_WRONG when it does not open, or was changed. */
export async function openKeyRing(sealed: string, passphrase: Secret): Promise<KeyRing> {
  try {
    const { plaintext } = await compactDecrypt(sealed, new TextEncoder().encode(passphrase.reveal()), {
      keyManagementAlgorithms: [ALGORITHM],
      contentEncryptionAlgorithms: [ENCRYPTION],
      maxPBES2Count: ITERATIONS,
    })
    return parseKeyRing(new Secret(new TextDecoder().decode(plaintext)), 'the backup')
  } catch (error) {
    if (!(error instanceof errors.JOSEError)) throw error
    throw new KeymeshError({
      code: 'PASSPHRASE_WRONG',
      fate: 'stop',
      message: 'The key ring in the backup does not open with this passphrase.',
      hint: 'Give the passphrase that the backup was made with. Nothing was written.',
    })
  }
}
