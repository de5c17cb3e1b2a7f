import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AuditActor, audit } from '../store/audit.ts'
import type { HttpDependencies } from './dependencies.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The object that was acted on, when the path does not say it; a name or path, never a secret. */
    auditSubject: string | null
  }
}

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Records, before the answer is sent, who did what and how it ended: every call that is not a read, and every read whose
 * route says `config.audit`, as those do that show a secret. Calls by nobody known have no place in an account's trail.
 */
export async function recordInTrail(
  { db, now }: Pick<HttpDependencies, 'db' | 'now'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { principal = null } = request.caller ?? {}
  const { audit: action, access } = request.routeOptions.config
  if (principal === null || access === 'public') return
  if (READS.has(request.method) && action === undefined) return
  const who: AuditActor = {
    kind: principal.kind,
    id: principal.tokenId ?? principal.userId,
    name: principal.userName,
  }
  await audit(db, {
    atMs: now(),
    accountId: principal.accountId,
    who,
    what: action ?? `${request.method} ${request.routeOptions.url ?? ''}`,
    subject: request.auditSubject ?? pathOf(request),
    outcome: outcomeOf(reply.statusCode),
    requestId: request.id,
    address: request.ip,
  })
}

const pathOf = (request: FastifyRequest): string => request.url.split('?')[0] ?? ''

function outcomeOf(status: number): 'done' | 'refused' | 'failed' {
  if (status < 400) return 'done'
  return status < 500 ? 'refused' : 'failed'
}
