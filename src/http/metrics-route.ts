import { z } from 'zod'
import type { App } from './app.ts'
import type { HttpDependencies } from './dependencies.ts'
import { OPERATIONS_READ, requireMember } from './permissions.ts'

export const METRICS_PATH = '/metrics'

const exposition = z.string().describe('The text format of Prometheus, version 0.0.4.')

/**
 * Public, it shows all accounts. To the holder of a token it shows what is of no account and of the token's own: names of
 * brokers are not for others.
 */
export async function metricsRoute(
  app: App,
  { metrics }: Pick<HttpDependencies, 'metrics'>,
  access: 'token' | 'public',
): Promise<void> {
  if (metrics === undefined) return
  app.get(
    METRICS_PATH,
    {
      config: { access: access === 'public' ? 'public' : requireMember(...OPERATIONS_READ) },
      logLevel: 'warn',
      schema: {
        tags: ['Health'],
        summary: 'Metrics for Prometheus',
        response: { 200: { description: 'Metrics', content: { 'text/plain': { schema: exposition } } } },
      },
    },
    async (request, reply) => {
      const { principal } = request.caller ?? {}
      const text = await metrics.render(principal == null ? {} : { account: principal.accountId })
      return reply
        .type(metrics.contentType)
        .serializer((value: string) => value)
        .send(text)
    },
  )
}
