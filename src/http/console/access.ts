import { requireSession, requireSessionAdministrator, requireSessionSignIn } from '../permissions.ts'

/** Looking: any user of the account, as with the operations API. */
export const LOOK = requireSession()
/** Changing what is there: administrators of the account. */
export const CHANGE = requireSessionAdministrator()
/** Before an account was chosen. */
export const SIGNED_IN = requireSessionSignIn()

export const CONSOLE = '/console'
/** Of every console route: the published description is of the API. */
export const HIDDEN = { hide: true } as const
