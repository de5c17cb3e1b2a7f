import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import { readRemoteStatus } from '../../store/followed-catalogues.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { one, oneOf } from '../pagination.ts'
import { BASE, OPERATIONS, READ } from './access.ts'

const time = z.int().nullable()

const remoteCatalogue = z
  .strictObject({
    origin: z.string().describe('The base address of the other service.'),
    followedSinceMs: time.describe('Null: it was never read as a whole, and the account is its own.'),
    lastStartedAtMs: time,
    lastSucceededAtMs: time,
    lastFailedAtMs: time,
    errorCode: z.string().nullable(),
    error: z.string().nullable().describe('Why the last reading failed; null when it did not.'),
    warnings: z.array(z.string()).readonly().describe('What it holds that cannot be used.'),
    unmanagedBrokers: z
      .array(z.strictObject({ id: z.string(), name: z.string() }).readonly())
      .readonly()
      .describe('Messaging services that it names and that have no management settings here.'),
  })
  .meta({ id: 'RemoteCatalogue' })

/** How the account stands with the service whose catalogue it follows. */
export async function remoteCatalogueRoutes(app: App, { db }: HttpDependencies): Promise<void> {
  app.get(
    `${BASE}/remoteCatalogue`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'How the account stands with the catalogue that it follows',
        response: { 200: oneOf(remoteCatalogue) },
      },
    },
    async ({ principal: { accountId } }) => {
      const status = await readRemoteStatus(db, accountId)
      if (status === null) throw notFound('followed catalogue of account', accountId)
      return one(status)
    },
  )
}
