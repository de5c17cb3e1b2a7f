import { InvalidArgumentError } from 'commander'

/** A whole number from 1 to 10,000, for commander. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > 10_000) {
    throw new InvalidArgumentError('give a whole number from 1 to 10000')
  }
  return count
}
