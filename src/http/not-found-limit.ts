import type { App } from './app.ts'
import type { HttpConfig } from './dependencies.ts'

/** Someone who searches for addresses is stopped long before the general limit. */
const NOT_FOUND_PER_MINUTE = 120

/** For `setNotFoundHandler`, once the rate limit is registered. */
export function notFoundLimit(app: App, { rateLimitPerMinute }: Pick<HttpConfig, 'rateLimitPerMinute'>) {
  if (rateLimitPerMinute === 0) return {}
  return { preHandler: app.rateLimit({ max: NOT_FOUND_PER_MINUTE, timeWindow: 60_000 }) }
}
