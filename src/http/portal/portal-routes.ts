import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { accessRequestDecisionRoutes } from './access-requests.ts'
import { brokerRoutes } from './brokers.ts'
import { eventApiRoutes } from './event-apis.ts'
import { placeRoutes } from './places.ts'
import { productVersionRoutes } from './product-versions.ts'
import { productRoutes } from './products.ts'

/** What a portal file can declare, object by object, for administrators. */
export async function portalRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  await placeRoutes(app, dependencies)
  await brokerRoutes(app, dependencies)
  await eventApiRoutes(app, dependencies)
  await productRoutes(app, dependencies)
  await productVersionRoutes(app, dependencies)
  await accessRequestDecisionRoutes(app, dependencies)
}
