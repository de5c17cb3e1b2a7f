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

const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g

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
  // A tag may hold commas, so the list is read and not split.
  const tags: readonly string[] = header.match(TAG) ?? []
  if (!/^[\s,]*$/.test(header.replace(TAG, '')) || tags.length === 0) {
    throw new InvalidInputError('The request', [{ path: 'If-Match', message: 'must be * or a list of ETags' }])
  }
  return (revision) => {
    if (!tags.includes(etagOf(revision))) throw preconditionFailed(kind, id)
  }
}
