import type { Context } from '../context.ts'
import { Secret } from '../domain/secret.ts'
import { audit } from '../store/audit.ts'
import { cryptoRandom } from '../store/random-source.ts'
import { createFirstUser, hasUsers } from '../store/users-changes.ts'
import type { Output } from './output.ts'

export const GENERATED_PASSWORD_LENGTH = 24
export const HOST = { kind: 'host', id: null, name: 'host' } as const

type Needed = Pick<Context, 'db' | 'config' | 'passwords' | 'accountId' | 'now'>

/**
 * Makes the administrator of the first account when there is no user at all. A password that was not given is printed
 * once, on standard output and not in the log, which others read and keep.
 */
export async function createFirstAdministrator(
  { db, config, passwords, accountId, now }: Needed,
  output: Pick<Output, 'line' | 'document' | 'json'>,
): Promise<void> {
  if (await hasUsers(db)) return
  const { name, password: given } = config.administrator
  const password = given ?? new Secret(cryptoRandom.token(GENERATED_PASSWORD_LENGTH))
  const passwordHash = await passwords.hash(password)
  const user = { id: cryptoRandom.token(11), name, passwordHash, accountId, roles: ['administrator'] } as const
  // Another replica may have been first: then its password is the one that counts.
  if (!(await createFirstUser(db, user))) return
  await audit(db, { atMs: now(), accountId, who: HOST, what: 'user.create', subject: name, outcome: 'done' })
  if (given !== null) return
  if (output.json) output.document({ administrator: { name, password: password.reveal() } })
  output.line(`The first administrator was created. User name: ${name}  Password: ${password.reveal()}`)
  output.line('The password is shown only now. keymesh users set-password makes a new one.')
}
