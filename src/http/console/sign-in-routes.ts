import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { codeOf } from '../../domain/errors.ts'
import { mayHoldTokens } from '../../domain/permissions.ts'
import { Secret } from '../../domain/secret.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { failureOf, logFailure } from '../errors.ts'
import { nameParameter, presentPassword } from '../identity/identity-schemas.ts'
import { exchange, signIn, signInLimit } from '../identity/sign-in.ts'
import { CONSOLE, HIDDEN, SIGNED_IN } from './access.ts'
import { seeOther, sendPage } from './send-page.ts'
import { beginSession, endSession } from './session.ts'
import { accountPage, signInPage } from './sign-in-page.ts'

/** A page of the console and nothing else: who signs in is not sent to other sites. */
const next = z
  .string()
  .regex(/^\/console(?:[/?][^\\\s]*)?$/)
  .max(2000)
  .catch(CONSOLE)

const form = z.object({ next, username: z.string().max(256).catch(''), password: presentPassword.catch('') })

/** Shown with the form again; anything else is a page of its own. */
const SHOWN_IN_FORM = new Set(['SIGN_IN_REFUSED', 'TOO_MANY_REQUESTS', 'FORBIDDEN'])

/** Coming and going: a session is a user token in a cookie. */
export async function signInPages(console: App, dependencies: HttpDependencies): Promise<void> {
  const rateLimit = signInLimit(dependencies.config)
  console.get(
    '/sign-in',
    { config: { access: 'public' }, schema: { ...HIDDEN, querystring: z.object({ next }) } },
    async (request, reply) =>
      sendPage(request, reply, signInPage({ next: request.query.next, userName: '', problem: null })),
  )
  console.post(
    '/sign-in',
    { config: { access: 'public', rateLimit }, schema: { ...HIDDEN, body: form } },
    async (request, reply) => {
      const { username, password, next: wanted } = request.body
      try {
        const user = await signIn(dependencies, request, reply, { userName: username, password: new Secret(password) })
        const claims = { userId: user.id, accountId: null, generation: user.tokenGeneration }
        const token = await dependencies.userTokens.issue(claims, dependencies.config.userTokenLifetimeMs)
        beginSession(request, reply, token)
        return seeOther(reply, user.memberships.length > 1 ? `${CONSOLE}/account` : wanted)
      } catch (error) {
        return await showProblem(error, request, reply, { next: wanted, userName: username })
      }
    },
  )
  console.post('/sign-out', { config: { access: 'public' }, schema: HIDDEN }, async (request, reply) => {
    endSession(request, reply)
    return seeOther(reply, `${CONSOLE}/sign-in`)
  })
  accountChoice(console, dependencies)
}

async function showProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: { readonly next: string; readonly userName: string },
): Promise<FastifyReply> {
  if (!SHOWN_IN_FORM.has(codeOf(error))) throw error
  const failure = failureOf(error)
  logFailure(error, failure, request)
  reply.code(failure.status)
  return await sendPage(request, reply, signInPage({ ...shown, problem: failure.answer.message }))
}

function accountChoice(console: App, dependencies: HttpDependencies): void {
  console.get('/account', { config: { access: SIGNED_IN }, schema: HIDDEN }, async (request, reply) => {
    const { user, tokenAccountId } = request.signedIn
    if (tokenAccountId !== null || user.memberships.length === 1) return seeOther(reply, CONSOLE)
    const entitled = user.memberships.filter(({ roles }) => mayHoldTokens(roles))
    return await sendPage(request, reply, accountPage(user.name, entitled))
  })
  console.post(
    '/account',
    {
      config: { access: SIGNED_IN, rateLimit: signInLimit(dependencies.config) },
      schema: { ...HIDDEN, body: z.object({ account: nameParameter }) },
    },
    async (request, reply) => {
      beginSession(request, reply, await exchange(dependencies, request, request.body.account))
      return seeOther(reply, CONSOLE)
    },
  )
}
