import { KeymeshError } from '../domain/errors.ts'

interface Trouble {
  /** SQLSTATE, a class of it with a `*`, or a code of the operating system. */
  readonly codes: readonly string[]
  readonly code: string
  readonly says: string
  readonly hint: string
}

const LOOK = 'Look at PostgreSQL and the network to it; then try again.'

const TROUBLES: readonly Trouble[] = [
  {
    codes: ['53100'],
    code: 'DATABASE_DISK_FULL',
    says: 'has no space left on its disk',
    hint: 'Free some disk space for it and try again; what was committed is kept.',
  },
  {
    codes: ['53300'],
    code: 'DATABASE_TOO_MANY_CONNECTIONS',
    says: 'takes no more connections',
    hint: 'Raise its max_connections, or lower KEYMESH_DATABASE_CONNECTIONS.',
  },
  {
    codes: ['25006'],
    code: 'DATABASE_READ_ONLY',
    says: 'takes no writes',
    hint: 'It may be a standby: let DATABASE_URL name the primary.',
  },
  { codes: ['57P01', '57P02', '57P03'], code: 'DATABASE_UNAVAILABLE', says: 'is starting or stopping', hint: LOOK },
  {
    codes: ['08*', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND'],
    code: 'DATABASE_UNAVAILABLE',
    says: 'cannot be reached',
    hint: LOOK,
  },
]

/** What the driver says of a connection without a code. */
const UNREACHABLE =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/

/**
 * What is wrong with the database itself, of an error that a statement met; null for any other error. To be asked where
 * no other server than the database can have made it.
 */
export function databaseTrouble(error: unknown): KeymeshError | null {
  if (!(error instanceof Error) || error instanceof KeymeshError) return null
  const code = 'code' in error ? String(error.code) : ''
  const known =
    TROUBLES.find(({ codes }) =>
      codes.some(
        (each) => each === code || (each.endsWith('*') && code.length === 5 && code.startsWith(each.slice(0, -1))),
      ),
    ) ?? (UNREACHABLE.test(error.message) ? TROUBLES.at(-1) : undefined)
  if (known === undefined) return null
  const { says, hint } = known
  return new KeymeshError({
    code: known.code,
    fate: 'retry',
    message: `The database ${says} (${error.message.split('\n', 1)[0]}).`,
    hint,
    cause: error,
  })
}
