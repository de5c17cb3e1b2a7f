import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { appRegistrationRoutes } from './app-registrations.ts'
import { credentialRoutes } from './credentials.ts'

/** Everything below `/api/v2/apim/appRegistrations`. */
export async function registrationRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  await appRegistrationRoutes(app, dependencies)
  await credentialRoutes(app, dependencies)
}
