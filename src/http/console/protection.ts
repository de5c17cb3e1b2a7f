import type { FastifyRequest } from 'fastify'
import { forbidden } from '../../domain/refusals.ts'
import type { App } from '../app.ts'

/** Pages load nothing from elsewhere, run nothing that stands in them, and are shown in no other page. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Headers of every console answer, and the refusal of forms that other sites send. Before anybody is asked who they are. */
export function protectConsole(console: App): void {
  console.addHook('onRequest', async (request, reply) => {
    reply.header('content-security-policy', PAGE_POLICY)
    // With no referrer at all, browsers do not say either which site a form comes from.
    reply.header('referrer-policy', 'same-origin')
    if (!READS.has(request.method)) refuseOtherSites(request)
  })
}

/**
 * Browsers say where a request comes from: in Sec-Fetch-Site where the connection is secure (Fetch Metadata), in Origin with
 * every POST (Fetch, "append a request Origin header"). A request that says neither comes from no browser that we know.
 */
function refuseOtherSites({ headers, host }: FastifyRequest): void {
  const site = headers['sec-fetch-site']
  const isOurs = site === undefined ? hostOf(headers.origin) === host : site === 'same-origin'
  if (isOurs) return
  throw forbidden('The form was not sent from a page of this console.', 'Open the console and do it there.')
}

const hostOf = (origin: string | undefined): string | null =>
  origin !== undefined && URL.canParse(origin) ? new URL(origin).host : null
