import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { accessRequestRoutes } from './access-requests.ts'
import { appRegistrationRoutes } from './app-registrations.ts'
import { credentialRoutes } from './credentials.ts'
import { registrationAttributeRoutes } from './registration-attributes.ts'
import { registrationEventApiRoutes } from './registration-event-apis.ts'
import { registrationFilterRoutes } from './registration-filters.ts'
import { webhookRoutes } from './webhooks.ts'

/** Everything below `/api/v2/apim/appRegistrations`. */
export async function registrationRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  await appRegistrationRoutes(app, dependencies)
  await registrationAttributeRoutes(app, dependencies)
  await credentialRoutes(app, dependencies)
  await accessRequestRoutes(app, dependencies)
  await registrationFilterRoutes(app, dependencies)
  await registrationEventApiRoutes(app, dependencies)
  await webhookRoutes(app, dependencies)
}
