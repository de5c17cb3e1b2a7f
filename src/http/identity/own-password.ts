import { z } from 'zod'
import { KeymeshError } from '../../domain/errors.ts'
import { Secret } from '../../domain/secret.ts'
import { countSignInAttempt, forgiveSignInAttempts } from '../../store/sign-in-attempts.ts'
import { findUserByName } from '../../store/users.ts'
import { changePassword } from '../../store/users-changes.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { noContent } from '../openapi.ts'
import { requireUser } from '../permissions.ts'
import { IDENTITY, newPassword, presentPassword } from './identity-schemas.ts'

/** A stolen user token alone changes no password, and guesses at it are counted as those of the sign-in. */
export async function ownPasswordRoutes(app: App, { db, now, passwords }: HttpDependencies): Promise<void> {
  app.put(
    '/api/v0/user/password',
    {
      config: { access: requireUser(), audit: 'user.changeOwnPassword' },
      schema: {
        tags: IDENTITY,
        summary: 'Change the own password',
        description: 'Ends every user token of the user, the one that was sent too.',
        body: z.strictObject({ currentPassword: presentPassword, newPassword }),
        response: { 204: noContent },
      },
    },
    async (request, reply) => {
      const { userId, userName } = request.principal
      const attempt = { userName, address: request.ip }
      const waitMs = await countSignInAttempt(db, attempt, now())
      if (waitMs > 0) throw refusal('TOO_MANY_REQUESTS', 'Too many attempts with a wrong password.')
      const found = await findUserByName(db, userName)
      const current = new Secret(request.body.currentPassword)
      if (!(await passwords.verify(found?.passwordHash ?? null, current))) {
        throw refusal('FORBIDDEN', 'The current password is wrong.')
      }
      await forgiveSignInAttempts(db, attempt)
      await changePassword(db, userId, await passwords.hash(new Secret(request.body.newPassword)))
      return reply.code(204).send()
    },
  )
}

const refusal = (code: string, message: string): KeymeshError => new KeymeshError({ code, fate: 'stop', message })
