import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { actionRoutes } from './actions.ts'
import { loginRoutes } from './logins.ts'
import { notificationRoutes } from './notifications.ts'
import { pauseRoutes } from './pauses.ts'
import { planRoutes } from './plans.ts'
import { policyRoutes } from './policies.ts'
import { recordRoutes } from './records.ts'
import { remoteCatalogueRoutes } from './remote-catalogue.ts'
import { statusRoutes } from './status.ts'
import { streamRoutes } from './streams.ts'

/** Everything that the command line can do with the brokers, for the operators of an account. */
export async function operationsRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  await statusRoutes(app, dependencies)
  await planRoutes(app, dependencies)
  await recordRoutes(app, dependencies)
  await loginRoutes(app, dependencies)
  await actionRoutes(app, dependencies)
  await pauseRoutes(app, dependencies)
  await policyRoutes(app, dependencies)
  await remoteCatalogueRoutes(app, dependencies)
  await notificationRoutes(app, dependencies)
  await streamRoutes(app, dependencies)
}
