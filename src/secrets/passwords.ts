import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { KeymeshError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'

/** argon2id (the library's default kind); memory in KiB. Stored with each hash, so they may be raised later. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const
/** Each takes memory and a core: more at once would only make all of them slower. */
const MAX_AT_ONCE = 2
const MAX_WAITING = 100

export interface Passwords {
  hash(password: Secret): Promise<string>
  /** With null, for an unknown user, it takes the same time and answers false. Throws BUSY when too many wait. */
  verify(stored: string | null, password: Secret): Promise<boolean>
}

export function createPasswords(): Passwords {
  const turns = new Turns()
  let dummy: Promise<string> | undefined

  return {
    hash: (password) => turns.take(() => hash(password.reveal(), PARAMETERS)),
    verify: async (stored, password) => {
      // Made before the branch, so that the first unknown user takes no longer than the others.
      dummy ??= hash(randomBytes(32), PARAMETERS)
      const unknown = await dummy
      const matches = await turns.take(() => verify(stored ?? unknown, password.reveal()))
      return stored !== null && matches
    },
  }
}

/** A bounded queue: whoever floods the sign-in gets an answer instead of the memory. */
class Turns {
  #running = 0
  readonly #waiting: (() => void)[] = []

  async take<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running >= MAX_AT_ONCE) {
      if (this.#waiting.length >= MAX_WAITING) throw busy()
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else {
      this.#running += 1
    }
    try {
      return await work()
    } finally {
      // The turn goes to the next in line, or back.
      const next = this.#waiting.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }
}

function busy(): KeymeshError {
  return new KeymeshError({
    code: 'BUSY',
    fate: 'retry',
    message: 'Too many passwords wait to be checked.',
    hint: 'Try again in a moment.',
  })
}
