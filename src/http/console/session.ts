import type { FastifyReply, FastifyRequest } from 'fastify'
import { SESSION_COOKIE } from '../authentication.ts'
import { CONSOLE } from './access.ts'

/**
 * A browser's session is a cookie that holds a user token as the API gives them: signed, ending by itself, and worth
 * nothing as soon as the user's tokens are ended. Scripts cannot read it, other sites cannot send it.
 */
export function beginSession(request: FastifyRequest, reply: FastifyReply, token: string): void {
  reply.setCookie(SESSION_COOKIE, token, cookieOf(request))
}

export function endSession(request: FastifyRequest, reply: FastifyReply): void {
  reply.clearCookie(SESSION_COOKIE, cookieOf(request))
}

/** Of all cookies of the console. Without an age: they end with the browser. */
export const cookieOf = (request: FastifyRequest) =>
  ({ path: CONSOLE, httpOnly: true, sameSite: 'strict', secure: request.protocol === 'https' }) as const
