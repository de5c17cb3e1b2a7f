import type { Command } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'
import type { Operations } from '../operations/operations.ts'
import { cryptoRandom } from '../store/random-source.ts'
import type { CommandDependencies } from './command.ts'
import { HOST } from './first-administrator.ts'

/** Of an environment variable of this host. */
type SecretOf = (name: string) => Secret | null

/** Runs `work` with what the command operates on: the store, or the service that it is pointed to. */
export async function operate<Result>(
  dependencies: CommandDependencies,
  command: Command,
  work: (operations: Operations, now: () => number, secretOf: SecretOf) => Promise<Result>,
): Promise<Result> {
  const address = dependencies.service?.(command) ?? null
  try {
    if (address === null) {
      const { StoreOperations } = await import('../operations/store-operations.ts')
      return await dependencies.withContext((context) =>
        work(
          new StoreOperations({ ...context, random: cryptoRandom, who: HOST }),
          context.now,
          context.config.secretFromEnvironment,
        ),
      )
    }
    const { HttpOperations } = await import('../operations/http-operations.ts')
    const operations = new HttpOperations(address)
    try {
      return await work(operations, Date.now, address.secretFromEnvironment)
    } finally {
      await operations.close()
    }
  } catch (error) {
    throw inWordsOfTheCommandLine(error)
  }
}

const OPTION_OF: Readonly<Record<string, string>> = {
  brokerId: '--broker',
  registrationId: '--registration',
  consumerKey: '--credential',
}

/** Whoever typed an option learns which one is wrong, not which field of a request. */
function inWordsOfTheCommandLine(error: unknown): unknown {
  if (!(error instanceof InvalidInputError) || !error.message.startsWith('The request ')) return error
  const known = error.problems.every(
    ({ file, path }) => file === undefined && (path === undefined || path in OPTION_OF),
  )
  if (!known) return error
  const problems = error.problems.map(({ path, message }) => {
    const option = path === undefined ? undefined : OPTION_OF[path]
    return option === undefined ? { message } : { path: option, message }
  })
  return new InvalidInputError('The command line', problems)
}
