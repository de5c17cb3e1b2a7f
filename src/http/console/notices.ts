import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { cookieOf } from './session.ts'

/** What the next page says above its content, once: what a form came to. */
export interface Notice {
  readonly tone: 'good' | 'warn'
  readonly text: string
}

const COOKIE = 'keymesh_notice'
const MAX_AGE_SECONDS = 60
const MAX_TEXT = 600
const notice = z.strictObject({ tone: z.enum(['good', 'warn']), text: z.string().min(1).max(MAX_TEXT) })

export function leaveNotice(request: FastifyRequest, reply: FastifyReply, { tone, text }: Notice): void {
  const value = JSON.stringify({ tone, text: text.slice(0, MAX_TEXT) })
  reply.setCookie(COOKIE, value, { ...cookieOf(request), maxAge: MAX_AGE_SECONDS })
}

/** Null when none was left. */
export function takeNotice(request: FastifyRequest, reply: FastifyReply): Notice | null {
  const text = request.cookies[COOKIE]
  if (text === undefined) return null
  reply.clearCookie(COOKIE, cookieOf(request))
  try {
    return notice.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
