import type { Permission } from '../domain/permissions.ts'

/**
 * Who may call a route. Every route says it in its `config.access`; the application refuses to start when one does not.
 * `'public'` is for anybody.
 */
export type Access = 'public' | AccessRule

export interface AccessRule {
  /** Which kind of token: `apiToken`, `user` (of an account), `signIn` (no account chosen yet), or `any` of an account. */
  readonly token: 'apiToken' | 'user' | 'signIn' | 'any'
  /** An API token needs each of them. A user token has no permissions; roles decide. */
  readonly permissions: readonly Permission[]
  /** Whether the user, or the owner of the API token, must be an administrator of the account. */
  readonly administrator: boolean
  /** Where the token is: in the header that programs send when absent, or in the cookie of a browser's session. */
  readonly carrier?: 'cookie'
}

/** An API token with all of these permissions. */
export function requirePermissions(...permissions: readonly Permission[]): AccessRule {
  return { token: 'apiToken', permissions, administrator: false }
}

/** A user token of the account, or an API token with all of these permissions. */
export function requireMember(...permissions: readonly Permission[]): AccessRule {
  return { token: 'any', permissions, administrator: false }
}

/** A user token of an administrator, or an administrator's API token with all of these permissions. */
export function requireAdministrator(...permissions: readonly Permission[]): AccessRule {
  return { token: 'any', permissions, administrator: true }
}

/** A user token of the account: for what a leaked API token must never do. */
export function requireUser(): AccessRule {
  return { token: 'user', permissions: [], administrator: false }
}

/** A user token of an administrator of the account, never an API token. */
export function requireAdministratorUser(): AccessRule {
  return { token: 'user', permissions: [], administrator: true }
}

/** A user token, whether or not an account was chosen: see `request.signedIn`. */
export function requireSignIn(): AccessRule {
  return { token: 'signIn', permissions: [], administrator: false }
}

/** Of the console: the session of a user of the account. */
export const requireSession = (): AccessRule => ({ ...requireUser(), carrier: 'cookie' })

/** Of the console: the session of an administrator of the account. */
export const requireSessionAdministrator = (): AccessRule => ({ ...requireAdministratorUser(), carrier: 'cookie' })

/** Of the console: a session, whether or not an account was chosen. */
export const requireSessionSignIn = (): AccessRule => ({ ...requireSignIn(), carrier: 'cookie' })

// The sets that routes ask for.

/** Every call of the APIM API. */
const APIM: readonly Permission[] = ['apim_event_api_product:*:*']

/** Reading the catalogue: products, plans, Event APIs, attributes, gateways. */
export const CATALOGUE_READ: readonly Permission[] = [
  ...APIM,
  'application_domain:get:*',
  'messaging_service:read',
  'modeled_event_mesh:get:*',
  'event_designer:access',
]

/** Registrations, access requests, credentials, and what hangs on them; reading and writing. */
export const REGISTRATIONS: readonly Permission[] = [
  ...APIM,
  'mission_control:access',
  'services:get',
  'service_requests:post:client_profile',
]

/** Reading what the portal and the operations API show of brokers. */
export const OPERATIONS_READ: readonly Permission[] = ['mission_control:access', 'services:get']

/** Declaring brokers and what they run. */
export const BROKERS_WRITE: readonly Permission[] = [...OPERATIONS_READ, 'services:put', 'services:post']

/** Declaring the catalogue. */
export const CATALOGUE_WRITE: readonly Permission[] = CATALOGUE_READ
