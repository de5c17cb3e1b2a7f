import type { Values } from './attribute.ts'
import type { StoredObject } from './object-collection.ts'
import type { ObjectTable } from './object-tables.ts'
import { SEMP_CODES, type SempFailure } from './semp-errors.ts'
import { type PathStep, stepPath } from './semp-path.ts'

export interface Answer {
  readonly httpStatus: number
  readonly body: string
}

/** What every answer repeats of its request. */
export interface RequestEcho {
  readonly method: string
  readonly uri: string
}

/** Values that an object's path gives: those of its parents. */
export function inheritedValues(parents: readonly PathStep[]): Values {
  const values: Values = {}
  for (const { table, identity } of parents) {
    table.keys.forEach((name, index) => {
      values[name] = identity[index] ?? ''
    })
  }
  return values
}

export const identityOf = (object: StoredObject, table: ObjectTable): string[] =>
  table.keys.map((name) => String(object.values[name]))

/** `uri` of the object and one `…Uri` for each child collection. */
export function linksOf(
  collectionUri: string,
  table: ObjectTable,
  identity: readonly string[],
): Record<string, string> {
  const uri = `${collectionUri}/${identity.map(encodeURIComponent).join(',')}`
  const links: Record<string, string> = {}
  for (const child of table.children) links[`${child.collection}Uri`] = `${uri}/${child.collection}`
  links.uri = uri
  return links
}

/** The URI of the collection `table` below the parents. */
export const collectionUriOf = (base: string, parents: readonly PathStep[], table: ObjectTable): string =>
  `${base}${parents.map((step) => stepPath(step.table, step.identity)).join('')}/${table.collection}`

export const failureAnswer = (failure: SempFailure, request: RequestEcho): Answer => ({
  httpStatus: 400,
  body: JSON.stringify({
    meta: {
      error: { code: SEMP_CODES[failure.status], description: failure.message, status: failure.status },
      request,
      responseCode: 400,
    },
  }),
})

export const successAnswer = (request: RequestEcho, content: Readonly<Record<string, unknown>>): Answer => ({
  httpStatus: 200,
  body: JSON.stringify({ ...content, meta: { request, responseCode: 200, ...(content.meta as object | undefined) } }),
})
