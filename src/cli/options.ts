import { InvalidArgumentError } from 'commander'
import type { Config } from '../config.ts'
import { InvalidInputError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'

/** The number of deletions that a person agrees to, for commander. */
export function parseDeletions(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('give the number of deletions')
  return count
}

/** A whole number from 1 to 10,000, for commander. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > 10_000) {
    throw new InvalidArgumentError('give a whole number from 1 to 10000')
  }
  return count
}

/** What `--broker` and `--registration` give. */
export interface PlaceOptions {
  readonly broker?: string
  readonly registration?: string
}

/** The same as the operations name it. */
export const chosen = ({ broker, registration }: PlaceOptions) => ({
  ...(broker === undefined ? {} : { brokerId: broker }),
  ...(registration === undefined ? {} : { registrationId: registration }),
})

/** What `--passphrase-env` names; null when it is absent. Throws InvalidInputError when the variable is not set. */
export function passphraseFrom(config: Config, name: string | undefined): Secret | null {
  if (name === undefined) return null
  const passphrase = config.secretFromEnvironment(name)
  if (passphrase !== null) return passphrase
  throw new InvalidInputError('The command line', [
    { path: '--passphrase-env', message: `the environment variable ${name} is not set` },
  ])
}
