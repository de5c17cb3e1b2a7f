import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { KeymeshError } from '../domain/errors.ts'
import type { AccountId } from '../domain/ids.ts'
import { isAdministrator, mayHoldTokens, type Permission, type UserRole } from '../domain/permissions.ts'
import { forbidden } from '../domain/refusals.ts'
import type { FoundApiToken } from '../store/api-tokens.ts'
import { findSignedInUser, type Membership, type SignedInUser } from '../store/users.ts'
import type { HttpDependencies } from './dependencies.ts'
import type { AccessRule } from './permissions.ts'

/** Who calls, in which account. Every query of a route carries `accountId`. */
export interface Principal {
  readonly kind: 'user' | 'apiToken'
  readonly accountId: AccountId
  readonly accountName: string
  readonly userId: string
  readonly userName: string
  /** Of the API token; a user token has none. */
  readonly permissions: ReadonlySet<Permission>
  /** Of the user in this account. */
  readonly roles: readonly UserRole[]
  /** Of the API token. */
  readonly tokenId: string | null
}

/** A user by a user token, before or after an account was chosen. */
export interface SignedIn {
  readonly user: SignedInUser
  /** The account that the token is for; null: not exchanged. */
  readonly tokenAccountId: AccountId | null
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls. Throws on routes that ask for no account. */
    readonly principal: Principal
    /** The signed-in user, on routes with `requireSignIn()`. */
    readonly signedIn: SignedIn
    /** Set by authentication; null before it and on public routes. */
    caller: Caller | null
  }
}

export interface Caller {
  readonly principal: Principal | null
  readonly signedIn: SignedIn | null
}

const API_TOKEN = /^km_([A-Za-z0-9]{11})_([A-Za-z0-9]{43})$/
const MAX_TOKEN_LENGTH = 4096
/** Holds the user token of a browser's session. */
export const SESSION_COOKIE = 'keymesh_session'

/** The text of an API token: its id, by which it is found, and 256 random bits. */
export const apiTokenText = (id: string, secret: string): string => `km_${id}_${secret}`

export const apiTokenHash = (secret: string): string => createHash('sha256').update(secret).digest('hex')

type Dependencies = Pick<HttpDependencies, 'db' | 'now' | 'userTokens'> & {
  readonly findApiToken: (id: string) => Promise<FoundApiToken | null>
}

/** Finds out who calls and refuses those that the route is not for: 401 nobody known, 403 not allowed. */
export async function authenticate(
  dependencies: Dependencies,
  request: FastifyRequest,
  rule: AccessRule,
): Promise<Caller> {
  const token = rule.carrier === 'cookie' ? sessionToken(request) : bearerToken(request.headers.authorization)
  const apiToken = API_TOKEN.exec(token)
  const caller =
    apiToken === null
      ? await userCaller(dependencies, token, rule)
      : { principal: await apiTokenPrincipal(dependencies, apiToken[1] ?? '', apiToken[2] ?? ''), signedIn: null }
  authorise(caller, rule)
  return caller
}

/** Throws unless the caller may do what the rule says. */
export function authorise({ principal, signedIn }: Caller, rule: AccessRule): void {
  if (rule.token === 'signIn') {
    if (signedIn === null) throw wrongToken('a user token', 'an API token')
    return
  }
  if (principal === null) throw new Error('a caller without an account came through')
  if (rule.token === 'apiToken' && principal.kind === 'user') throw wrongToken('an API token', 'a user token')
  if (rule.token === 'user' && principal.kind === 'apiToken') throw wrongToken('a user token', 'an API token')
  if (!mayHoldTokens(principal.roles)) throw notEntitled(principal.accountName)
  if (rule.administrator && !isAdministrator(principal.roles)) {
    throw forbidden(`Only an administrator of account ${principal.accountName} may do this.`)
  }
  if (principal.kind === 'user') return
  const missing = rule.permissions.filter((permission) => !principal.permissions.has(permission))
  if (missing.length > 0) throw permissionMissing(missing)
}

function bearerToken(header: string | undefined): string {
  const found = /^Bearer +([\x21-\x7e]+)$/i.exec(header ?? '')?.[1]
  if (found === undefined || found.length > MAX_TOKEN_LENGTH) {
    throw notAuthenticated('This call needs a token in the header "Authorization: Bearer …".')
  }
  return found
}

/** A cookie is asked for only by routes that other sites cannot make a browser call. */
function sessionToken({ cookies }: FastifyRequest): string {
  const found = cookies[SESSION_COOKIE]
  if (found === undefined || found.length > MAX_TOKEN_LENGTH) throw notAuthenticated('Sign in first.')
  return found
}

async function apiTokenPrincipal({ findApiToken, now }: Dependencies, id: string, secret: string): Promise<Principal> {
  const found = await findApiToken(id)
  if (found === null || !sameHash(found.secretHash, apiTokenHash(secret))) throw unknownToken()
  if (found.expiresAtMs !== null && found.expiresAtMs <= now()) throw unknownToken()
  return {
    kind: 'apiToken',
    accountId: found.accountId,
    accountName: found.accountName,
    userId: found.userId,
    userName: found.userName,
    permissions: new Set(found.permissions),
    roles: found.roles,
    tokenId: id,
  }
}

const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

async function userCaller({ db, userTokens }: Dependencies, token: string, rule: AccessRule): Promise<Caller> {
  const claims = await userTokens.verify(token)
  const user = claims === null ? null : await findSignedInUser(db, claims.userId)
  if (claims === null || user === null || user.tokenGeneration !== claims.generation) throw unknownToken()
  const signedIn = { user, tokenAccountId: claims.accountId }
  if (rule.token === 'signIn') return { principal: null, signedIn }
  const membership = chosenMembership(user, claims.accountId)
  return { principal: userPrincipal(user, membership), signedIn }
}

/** Of the account that the token was exchanged for, or of the only one. */
function chosenMembership(user: SignedInUser, accountId: AccountId | null): Membership {
  if (accountId === null && user.memberships.length > 1) {
    throw new KeymeshError({
      code: 'ACCOUNT_NOT_CHOSEN',
      fate: 'stop',
      message: 'The user belongs to several accounts, and this user token is for none of them.',
      hint: 'Exchange it first: POST /api/v0/iam/tokens/{account_name}.',
    })
  }
  const membership = user.memberships.find((one) => accountId === null || one.accountId === accountId)
  if (membership === undefined) throw forbidden('The user does not belong to an account that this token is for.')
  return membership
}

export function userPrincipal(user: SignedInUser, membership: Membership): Principal {
  return {
    kind: 'user',
    accountId: membership.accountId,
    accountName: membership.accountName,
    userId: user.id,
    userName: user.name,
    permissions: new Set(),
    roles: membership.roles,
    tokenId: null,
  }
}

const notAuthenticated = (message: string): KeymeshError =>
  new KeymeshError({ code: 'NOT_AUTHENTICATED', fate: 'stop', message })

/** One answer for a token that never was, is altered, ended, or belongs to nobody any more. */
const unknownToken = (): KeymeshError => notAuthenticated('The token is not valid, or not valid any more.')

const wrongToken = (needed: string, given: string): KeymeshError =>
  forbidden(`This call needs ${needed}, and ${given} was given.`)

export const notEntitled = (account: string): KeymeshError =>
  forbidden(
    `In account ${account} the user is neither an administrator nor both service-management-editor and event-portal-manager.`,
  )

function permissionMissing(missing: readonly Permission[]): KeymeshError {
  return new KeymeshError({
    code: 'PERMISSION_MISSING',
    fate: 'stop',
    message: `The API token lacks the permission${missing.length === 1 ? '' : 's'} ${missing.join(', ')}.`,
  })
}
