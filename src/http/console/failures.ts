import type { FastifyReply, FastifyRequest } from 'fastify'
import { codeOf } from '../../domain/errors.ts'
import { failureOf, logFailure } from '../errors.ts'
import { CONSOLE } from './access.ts'
import { againPage, failurePage } from './failure-page.ts'
import { isPartRequest, seeOther, sendPage } from './send-page.ts'

/** Answers everything that a console route throws with a page; who is not signed in goes to the sign-in and comes back. */
export async function answerFailure(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const failure = failureOf(error)
  logFailure(error, failure, request)
  const isNavigation = request.method === 'GET' && !isPartRequest(request)
  if (failure.status === 401 && isNavigation) {
    if (isFromOtherSite(request))
      return reply.type('text/html; charset=utf-8').send(String(await againPage(request.url)))
    return seeOther(reply, signInPath(request.url))
  }
  if (codeOf(error) === 'ACCOUNT_NOT_CHOSEN' && isNavigation) return seeOther(reply, `${CONSOLE}/account`)
  if (failure.status === 503) reply.header('retry-after', '1')
  return await sendPage(request, reply.code(failure.status), failurePage(failure))
}

/** A link on another site: the browser holds the session back from it, and sends it when our own page asks. */
const isFromOtherSite = ({ headers }: FastifyRequest): boolean => headers['sec-fetch-site'] === 'cross-site'

const signInPath = (wanted: string): string =>
  wanted === CONSOLE ? `${CONSOLE}/sign-in` : `${CONSOLE}/sign-in?next=${encodeURIComponent(wanted)}`
