import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { KeymeshError } from '../../domain/errors.ts'
import { mayHoldTokens } from '../../domain/permissions.ts'
import { forbidden, notFound } from '../../domain/refusals.ts'
import { Secret } from '../../domain/secret.ts'
import { type AuditEntry, audit } from '../../store/audit.ts'
import { countSignInAttempt, forgiveSignInAttempts } from '../../store/sign-in-attempts.ts'
import { findUserByName, type UserWithPassword } from '../../store/users.ts'
import type { App } from '../app.ts'
import { notEntitled } from '../authentication.ts'
import type { HttpConfig, HttpDependencies } from '../dependencies.ts'
import { emptyBody } from '../openapi.ts'
import { requireSignIn } from '../permissions.ts'
import { IDENTITY, nameParameter, presentPassword, userToken } from './identity-schemas.ts'

const SIGN_INS_PER_MINUTE = 30

/** Of each call that gives tokens, for one address. */
export const signInLimit = ({ rateLimitPerMinute }: Pick<HttpConfig, 'rateLimitPerMinute'>) =>
  rateLimitPerMinute === 0 ? (false as const) : { max: SIGN_INS_PER_MINUTE, timeWindow: 60_000 }

/** The two calls that give user tokens: for a password, and for a token of no account. */
export async function signInRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { config } = dependencies
  const rateLimit = signInLimit(config)
  app.post(
    '/api/v1/iam/tokens',
    {
      config: { access: 'public', rateLimit },
      schema: {
        tags: IDENTITY,
        summary: 'Create a user token',
        description: 'For an administrator, or a user with both of the other roles, of at least one account.',
        body: z.strictObject({ username: z.string().min(1).max(256), password: presentPassword }),
        response: { 200: userToken },
      },
    },
    async (request, reply) => {
      const { username, password } = request.body
      const user = await signIn(dependencies, request, reply, { userName: username, password: new Secret(password) })
      const claims = { userId: user.id, accountId: null, generation: user.tokenGeneration }
      return { token: await dependencies.userTokens.issue(claims, config.userTokenLifetimeMs) }
    },
  )
  app.post(
    '/api/v0/iam/tokens/:accountName',
    {
      config: { access: requireSignIn(), rateLimit },
      schema: {
        tags: IDENTITY,
        summary: 'Exchange a user token for one of an account',
        params: z.strictObject({ accountName: nameParameter }),
        body: emptyBody,
        response: { 200: userToken },
      },
    },
    async (request) => ({ token: await exchange(dependencies, request, request.params.accountName) }),
  )
}

interface Credentials {
  readonly userName: string
  readonly password: Secret
}

/** Throws one and the same refusal, after the same time, for a wrong password and for a user that is not there. */
export async function signIn(
  { db, now, passwords }: HttpDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  { userName, password }: Credentials,
): Promise<UserWithPassword['user']> {
  const attempt = { userName, address: request.ip }
  const waitMs = await countSignInAttempt(db, attempt, now())
  if (waitMs > 0) {
    reply.header('retry-after', Math.ceil(waitMs / 1000))
    throw tooManyAttempts(waitMs)
  }
  const found = await findUserByName(db, userName)
  const record = (outcome: AuditEntry['outcome']) =>
    audit(db, { ...signInEntry(request, found, now()), what: 'signIn', subject: 'password', outcome })
  if (!(await passwords.verify(found?.passwordHash ?? null, password)) || found === null) {
    await record('refused')
    throw refused()
  }
  await forgiveSignInAttempts(db, attempt)
  if (!found.user.memberships.some(({ roles }) => mayHoldTokens(roles))) {
    await record('refused')
    const [only] = found.user.memberships
    throw only === undefined ? forbidden('The user belongs to no account.') : notEntitled(only.accountName)
  }
  await record('done')
  return found.user
}

/** A user token of this account for `request.signedIn`, whose token is of none. */
export async function exchange(
  { db, now, userTokens, config }: HttpDependencies,
  request: FastifyRequest,
  accountName: string,
): Promise<string> {
  const { user, tokenAccountId } = request.signedIn
  if (tokenAccountId !== null) {
    throw forbidden('This user token is for an account already.', 'Exchange the token that the sign-in gave.')
  }
  const membership = user.memberships.find((one) => one.accountName === accountName)
  // An account of others and one that is not there are the same to the caller.
  if (membership === undefined) throw notFound('account', accountName)
  const entitled = mayHoldTokens(membership.roles)
  await audit(db, {
    atMs: now(),
    accountId: membership.accountId,
    who: { kind: 'user', id: user.id, name: user.name },
    what: 'signIn.account',
    subject: accountName,
    outcome: entitled ? 'done' : 'refused',
    requestId: request.id,
    address: request.ip,
  })
  if (!entitled) throw notEntitled(accountName)
  const claims = { userId: user.id, accountId: membership.accountId, generation: user.tokenGeneration }
  return await userTokens.issue(claims, config.userTokenLifetimeMs)
}

/** In the trail of the user's account when there is one; a name that is nobody's is not kept, it may be a password. */
function signInEntry(request: FastifyRequest, found: UserWithPassword | null, atMs: number) {
  const [only, ...more] = found?.user.memberships ?? []
  return {
    atMs,
    accountId: only === undefined || more.length > 0 ? null : only.accountId,
    who: { kind: 'user', id: found?.user.id ?? null, name: found?.user.name ?? '(unknown user)' },
    requestId: request.id,
    address: request.ip,
  } as const
}

const refused = (): KeymeshError =>
  new KeymeshError({ code: 'SIGN_IN_REFUSED', fate: 'stop', message: 'The user name or the password is wrong.' })

function tooManyAttempts(waitMs: number): KeymeshError {
  return new KeymeshError({
    code: 'TOO_MANY_REQUESTS',
    fate: 'retry',
    message: 'Too many attempts to sign in failed.',
    hint: `Try again in ${Math.ceil(waitMs / 60_000)} minutes.`,
  })
}
