/** A 32-bit hash (FNV-1a with a final mix) of a text; the same text and seed give the same number. */
export function hashText(textToHash: string, seed: number): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0
  for (let index = 0; index < textToHash.length; index += 1) {
    hash = Math.imul(hash ^ textToHash.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** The same as a fraction, 0 included, 1 not. */
export const hashFraction = (textToHash: string, seed: number): number => hashText(textToHash, seed) / 0x1_0000_0000

export type Random = () => number

/** mulberry32: small, fast and repeatable; not for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}
