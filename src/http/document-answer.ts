import type { FastifyReply } from 'fastify'
import type { HttpDependencies } from './dependencies.ts'
import { etagOf } from './etag.ts'
import { type Page, paginate } from './pagination.ts'

type Checking = Pick<HttpDependencies, 'checkAnswers'>

/** `{data, meta}` of a document that the database gives as JSON text, with its ETag. */
export function sendDocument(
  reply: FastifyReply,
  checking: Checking,
  { document, revision }: { readonly document: string; readonly revision: string },
): FastifyReply {
  return sendJson(reply.header('etag', etagOf(revision)), checking, `{"data":${document},"meta":{}}`)
}

/** A page of such documents: `items` is the inside of an array. */
export function sendDocuments(
  reply: FastifyReply,
  checking: Checking,
  page: Page,
  { count, items }: { readonly count: number; readonly items: string },
): FastifyReply {
  return sendJson(reply, checking, `{"data":[${items}],"meta":${JSON.stringify(paginate(page, [], count).meta)}}`)
}

/** Text that is JSON goes out as it is; parsed only where answers are checked against their schema. */
function sendJson(reply: FastifyReply, { checkAnswers }: Checking, text: string): FastifyReply {
  if (checkAnswers === true) return reply.send(JSON.parse(text))
  return reply.type('application/json; charset=utf-8').send(text)
}
