import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { InvalidInputError } from '../domain/errors.ts'
import { preconditionFailed } from '../domain/refusals.ts'

/** Given to a store function, which calls it with the stored revision inside its transaction, the row locked. */
export type RevisionCheck = (revision: string) => void

/** A strong ETag; any text may be a revision. */
export function etagOf(revision: string): string {
  const plain = /^[\x21\x23-\x7e]{1,128}$/.test(revision) ? revision : revisionOf(revision)
  return `"${plain}"`
}

export function setEtag(reply: FastifyReply, revision: string): void {
  reply.header('etag', etagOf(revision))
}

/** A revision for what has none of its own: a digest of what is shown of it. */
export function revisionOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url')
}

/**
 * What an `If-Match` header demands. Without one, or with `*`, every revision passes; else a revision that is not
 * listed is answered with 412. Weak tags never match, as RFC 9110 says of If-Match.
 */
export function ifMatch(header: string | undefined, kind: string, id: string): RevisionCheck {
  if (header === undefined || header.trim() === '*') return () => undefined
  const tags = header.split(',').map((tag) => tag.trim())
  if (!tags.every((tag) => /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag))) {
    throw new InvalidInputError('The request', [{ path: 'If-Match', message: 'must be * or a list of ETags' }])
  }
  return (revision) => {
    if (!tags.includes(etagOf(revision))) throw preconditionFailed(kind, id)
  }
}
