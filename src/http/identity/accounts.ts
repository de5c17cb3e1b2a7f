import { z } from 'zod'
import { USER_ROLES } from '../../domain/permissions.ts'
import { notFound } from '../../domain/refusals.ts'
import { createAccount, deleteAccount, renameAccount } from '../../store/accounts.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { requireAdministratorUser, requireSignIn } from '../permissions.ts'
import { accountName, IDENTITY, nameParameter } from './identity-schemas.ts'

const account = z.strictObject({
  id: z.string(),
  name: z.string(),
  roles: z.array(z.enum(USER_ROLES)).describe('Of the caller.'),
})

/** Accounts as one of their users sees them; those of others do not exist. */
export async function accountRoutes(app: App, { db }: HttpDependencies): Promise<void> {
  app.get(
    '/api/v0/accounts',
    {
      config: { access: requireSignIn() },
      schema: {
        tags: IDENTITY,
        summary: 'List own accounts',
        description: 'Whatever account the token is for, if any.',
        querystring: pageQuery,
        response: { 200: listOf(account) },
      },
    },
    async ({ signedIn, query }) => {
      const mine = signedIn.user.memberships.map((membership) => ({
        id: membership.accountId,
        name: membership.accountName,
        roles: [...membership.roles],
      }))
      const { limit, offset } = limitOf(query)
      return paginate(query, mine.slice(offset, offset + limit), mine.length)
    },
  )
  app.post(
    '/api/v0/accounts',
    {
      config: { access: requireAdministratorUser(), audit: 'account.create' },
      schema: {
        tags: IDENTITY,
        summary: 'Create an account',
        description:
          'The caller becomes its administrator, belongs to several accounts then, and exchanges user tokens.',
        body: z.strictObject({ name: accountName }),
        response: { 201: oneOf(account) },
      },
    },
    async (request, reply) => {
      const { name } = request.body
      request.auditSubject = name
      const id = await createAccount(db, { name, userId: request.principal.userId })
      return reply.code(201).send(one({ id, name, roles: ['administrator' as const] }))
    },
  )
  app.patch(
    '/api/v0/accounts/:accountName',
    {
      config: { access: requireAdministratorUser(), audit: 'account.rename' },
      schema: {
        tags: IDENTITY,
        summary: 'Rename the account that the token is for',
        description: 'Its id stays, and so do tokens. The name that it had first is not free for another account.',
        params: z.strictObject({ accountName: nameParameter }),
        body: z.strictObject({ name: accountName.optional() }),
        response: { 200: oneOf(account) },
      },
    },
    async ({ principal, params, body }) => {
      if (params.accountName !== principal.accountName) throw notFound('account', params.accountName)
      const name = body.name ?? principal.accountName
      if (name !== principal.accountName) await renameAccount(db, { id: principal.accountId }, name)
      return one({ id: principal.accountId, name, roles: [...principal.roles] })
    },
  )
  app.delete(
    '/api/v0/accounts/:accountName',
    {
      config: { access: requireAdministratorUser(), audit: 'account.delete' },
      schema: {
        tags: IDENTITY,
        summary: 'Delete the account that the token is for, when it is empty',
        params: z.strictObject({ accountName: nameParameter }),
        response: { 204: noContent },
      },
    },
    async ({ principal, params }, reply) => {
      if (params.accountName !== principal.accountName) throw notFound('account', params.accountName)
      await deleteAccount(db, { id: principal.accountId, name: principal.accountName })
      return reply.code(204).send()
    },
  )
}
