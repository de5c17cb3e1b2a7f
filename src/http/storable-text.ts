import type { FastifyRequest } from 'fastify'
import { InvalidInputError, type Problem } from '../domain/errors.ts'

/** Deeper than any body that a schema describes, and shallow enough for code that recurses. */
const MAX_DEPTH = 64

interface Place {
  readonly value: unknown
  readonly path: string
  readonly depth: number
}

/** NUL and lone surrogates fit no column of PostgreSQL, whatever the schema of a route allows. */
export function refuseUnstorableText(request: Pick<FastifyRequest, 'params' | 'query' | 'body'>): void {
  const problems: Problem[] = []
  const open: Place[] = [request.params, request.query, request.body].map((value) => ({ value, path: '', depth: 0 }))
  for (let place = open.pop(); place !== undefined && problems.length === 0; place = open.pop()) {
    const { value, path, depth } = place
    if (typeof value === 'string') {
      if (!isStorable(value)) problems.push({ path, message: 'must not contain NUL or half a character' })
    } else if (depth > MAX_DEPTH) {
      problems.push({ path: '', message: `must not be nested more than ${MAX_DEPTH} levels deep` })
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        if (!isStorable(key)) problems.push({ path, message: 'must not have a name with NUL or half a character' })
        open.push({ value: item, path: path === '' ? key : `${path}.${key}`, depth: depth + 1 })
      }
    }
  }
  if (problems.length > 0) throw new InvalidInputError('The request', problems)
}

const isStorable = (text: string): boolean => !text.includes('\u0000') && text.isWellFormed()
