import { randomBytes, randomUUID } from 'node:crypto'

/** Unpredictable text; tests give a predictable one. */
export interface RandomSource {
  /** Of letters and digits. */
  token(length: number): string
  /** Of a new row. */
  id(): string
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
/** Bytes from here up would make some characters likelier than others. */
const REJECTED_FROM = 256 - (256 % ALPHABET.length)

export const cryptoRandom: RandomSource = {
  token(length) {
    let text = ''
    while (text.length < length) {
      for (const byte of randomBytes(length)) {
        if (byte < REJECTED_FROM && text.length < length) text += ALPHABET.charAt(byte % ALPHABET.length)
      }
    }
    return text
  },
  id: randomUUID,
}
