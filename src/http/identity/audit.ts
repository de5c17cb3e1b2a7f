import { z } from 'zod'
import { readAudit } from '../../store/audit.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { limitOf, listOf, pageQuery, paginate } from '../pagination.ts'
import { OPERATIONS_READ, requireAdministrator } from '../permissions.ts'
import { epochMs, IDENTITY } from './identity-schemas.ts'

const entry = z.strictObject({
  id: z.int(),
  time: epochMs,
  actorKind: z.enum(['user', 'apiToken', 'host']),
  actorId: z.string().nullable().describe('Of the user, or of the API token.'),
  actorName: z.string().describe('Of the user.'),
  action: z.string().meta({ example: 'credential.read' }),
  subject: z.string(),
  outcome: z.enum(['done', 'refused', 'failed']),
  requestId: z.string().nullable(),
  address: z.string().nullable(),
})

/** Who did what in the account, newest first. */
export async function auditRoutes(app: App, { db }: HttpDependencies): Promise<void> {
  app.get(
    '/api/v0/audit',
    {
      config: { access: requireAdministrator(...OPERATIONS_READ) },
      schema: {
        tags: IDENTITY,
        summary: 'Read the audit trail',
        querystring: pageQuery,
        response: { 200: listOf(entry) },
      },
    },
    async ({ principal, query }) => {
      const { entries, count } = await readAudit(db, principal.accountId, limitOf(query))
      const shown = entries.map(({ atMs, ...rest }) => ({ ...rest, time: atMs }))
      return paginate(query, shown, count)
    },
  )
}
