import type { Context } from '../../src/context.ts'
import { PERMISSIONS } from '../../src/domain/permissions.ts'
import { apiTokenHash, apiTokenText } from '../../src/http/authentication.ts'
import { createApiToken } from '../../src/store/api-tokens.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { insertUser } from '../../src/store/users.ts'

/** Of a new administrator, with every permission. */
export async function addApiToken({ db, accountId, now }: Pick<Context, 'db' | 'accountId' | 'now'>): Promise<string> {
  const [userId, id, secret] = [cryptoRandom.token(11), cryptoRandom.token(11), cryptoRandom.token(43)]
  await insertUser(db, { id: userId, name: 'bench', passwordHash: '-', accountId, roles: ['administrator'] })
  const times = { createdAtMs: now(), expiresAtMs: null }
  const secretHash = apiTokenHash(secret)
  await createApiToken(db, { id, accountId, userId, name: 'bench', secretHash, permissions: PERMISSIONS, ...times })
  return apiTokenText(id, secret)
}
