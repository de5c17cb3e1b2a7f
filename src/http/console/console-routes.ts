import fastifyCookie from '@fastify/cookie'
import fastifyFormbody from '@fastify/formbody'
import { notFound } from '../../domain/refusals.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { notFoundLimit } from '../not-found-limit.ts'
import { CONSOLE } from './access.ts'
import { assetRoutes } from './assets.ts'
import { cataloguePages } from './catalogue-routes.ts'
import { driftPages } from './drift-routes.ts'
import { answerFailure } from './failures.ts'
import { meshPages } from './mesh-routes.ts'
import { protectConsole } from './protection.ts'
import { registrationPages } from './registration-routes.ts'
import { runPages } from './run-routes.ts'
import { signInPages } from './sign-in-routes.ts'

/** One function per group of pages; see `page.ts` for what they keep to. Paths are relative to `/console`. */
type RegisterPages = (console: App, dependencies: HttpDependencies) => Promise<void>

const PAGES: readonly RegisterPages[] = [
  assetRoutes, //
  signInPages,
  meshPages,
  registrationPages,
  driftPages,
  runPages,
  cataloguePages,
]

/** In a scope of its own: cookies, forms and pages instead of tokens and JSON are for these routes only. */
export async function consoleRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  await app.register(
    async (scope) => {
      const console = scope as App
      console.removeAllContentTypeParsers()
      await console.register(fastifyFormbody)
      await console.register(fastifyCookie)
      protectConsole(console)
      console.setErrorHandler(answerFailure)
      console.setNotFoundHandler(notFoundLimit(console, dependencies.config), (request) => {
        throw notFound('page', request.url.split('?')[0] ?? '')
      })
      for (const register of PAGES) await register(console, dependencies)
    },
    { prefix: CONSOLE },
  )
}
