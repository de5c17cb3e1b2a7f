import type { FastifyReply, FastifyRequest } from 'fastify'
import { isAdministrator } from '../../domain/permissions.ts'
import { etagOf, revisionOf } from '../etag.ts'
import { ASSETS } from './assets.ts'
import { takeNotice } from './notices.ts'
import { layout, mainPart, type Page, type Viewer } from './page.ts'

/** Sent by the page's script, which wants `main` alone, and only when it differs from what it has. */
const PART_HEADER = 'x-keymesh-part'

export const isPartRequest = (request: FastifyRequest): boolean => request.headers[PART_HEADER] === 'main'

export async function sendPage(request: FastifyRequest, reply: FastifyReply, page: Page): Promise<FastifyReply> {
  reply.type('text/html; charset=utf-8')
  if (!isPartRequest(request)) {
    const frame = { viewer: viewerOf(request), notice: takeNotice(request, reply), assets: ASSETS }
    return reply.send(String(await layout(page, frame)))
  }
  // Somebody looks: no news for the log.
  request.log.level = 'warn'
  const part = String(await mainPart(page))
  const etag = etagOf(revisionOf(part))
  reply.header('etag', etag)
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(part)
}

export function viewerOf(request: FastifyRequest): Viewer | null {
  const { principal } = request.caller ?? {}
  if (principal == null) return null
  const { userName, accountName, roles } = principal
  return { userName, accountName, isAdministrator: isAdministrator(roles) }
}

/** After a form: what it did is on the next page, and going back does not do it again. */
export const seeOther = (reply: FastifyReply, path: string): FastifyReply => reply.redirect(path, 303)
