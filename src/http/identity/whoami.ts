import { z } from 'zod'
import { PERMISSIONS, USER_ROLES } from '../../domain/permissions.ts'
import type { App } from '../app.ts'
import { one, oneOf } from '../pagination.ts'
import { requireMember } from '../permissions.ts'

const caller = z.strictObject({
  kind: z.enum(['user', 'apiToken']).describe('What kind of token was sent.'),
  accountId: z.string(),
  accountName: z.string(),
  userId: z.string(),
  userName: z.string(),
  roles: z.array(z.enum(USER_ROLES)),
  permissions: z.array(z.enum(PERMISSIONS)).describe('Of the API token; a user token has none.'),
})

/** Who the token stands for, and what it may do: what a client asks first. */
export async function whoamiRoutes(app: App): Promise<void> {
  app.get(
    '/api/v0/user',
    {
      config: { access: requireMember() },
      schema: { tags: ['Identity'], summary: 'Who calls', response: { 200: oneOf(caller) } },
    },
    async ({ principal }) => {
      const { kind, accountId, accountName, userId, userName } = principal
      const [roles, permissions] = [[...principal.roles], [...principal.permissions]]
      return one({ kind, accountId, accountName, userId, userName, roles, permissions })
    },
  )
}
