import { sql } from 'kysely'
import { z } from 'zod'
import type { App } from './app.ts'
import type { HttpDependencies } from './dependencies.ts'

const DATABASE_PATIENCE_MS = 2_000

const healthAnswer = z.strictObject({ status: z.enum(['ok', 'not-ready']), reason: z.string().optional() })

/** `/healthz`: the process answers. `/readyz`: it should get requests, as the database answers and no stop began. */
export async function healthRoutes(
  app: App,
  { db }: Pick<HttpDependencies, 'db'>,
  state: { readonly stopping: boolean },
): Promise<void> {
  const config = { access: 'public', rateLimit: false } as const
  app.get('/healthz', { config, logLevel: 'warn', schema: healthSchema('The process is up') }, async () => ({
    status: 'ok' as const,
  }))
  app.get(
    '/readyz',
    { config, logLevel: 'warn', schema: healthSchema('The process can answer calls') },
    async (_request, reply) => {
      const reason = state.stopping ? 'stopping' : await databaseProblem(db)
      if (reason === null) return { status: 'ok' as const }
      return reply.code(503).send({ status: 'not-ready', reason })
    },
  )
}

const healthSchema = (summary: string) => ({
  tags: ['Health'],
  summary,
  response: { 200: healthAnswer, 503: healthAnswer },
})

async function databaseProblem(db: HttpDependencies['db']): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('the database does not answer in time'), DATABASE_PATIENCE_MS)
  })
  const answer = sql`select 1`.execute(db).then(
    () => null,
    () => 'the database does not answer',
  )
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
