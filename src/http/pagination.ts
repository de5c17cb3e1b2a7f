import { z } from 'zod'

export const DEFAULT_PAGE_SIZE = 20
const MAX_PAGE_SIZE = 100
const MAX_PAGE_NUMBER = 16_384

const wholeNumber = (min: number, max: number) =>
  z.coerce.number('must be a whole number').int('must be a whole number').min(min).max(max)

/** The query parameters of every list; spread them into the schema of a list that has more. */
export const pageParameters = {
  pageSize: wholeNumber(1, MAX_PAGE_SIZE).default(DEFAULT_PAGE_SIZE).describe('How many items a page holds.'),
  pageNumber: wholeNumber(1, MAX_PAGE_NUMBER).default(1).describe('Which page, from 1.'),
} as const

/** The same for a list that can be sorted by these fields: `z.strictObject({...sortedPage(['name', 'id']), where})`. */
export function sortedPage<const Field extends string>(fields: readonly [Field, ...Field[]]) {
  return {
    ...pageParameters,
    sortFieldName: z.enum(fields).optional().describe('The field to sort by.'),
    sortDirection: z.enum(['asc', 'desc']).default('asc').describe('The direction of the sort.'),
  } as const
}

/** A list without more parameters than those of pages. */
export const pageQuery = z.strictObject(pageParameters)

export interface Page {
  readonly pageSize: number
  readonly pageNumber: number
}

/** For SQL: `limit` and `offset`. */
export const limitOf = ({ pageSize, pageNumber }: Page) => ({
  limit: pageSize,
  offset: (pageNumber - 1) * pageSize,
})

const pagination = z
  .strictObject({
    pageNumber: z.int().describe('The page, from 1.'),
    count: z.int().describe('How many items there are on all pages.'),
    pageSize: z.int().describe('How many items a page holds.'),
    nextPage: z.int().nullable().describe('The next page; null at the end.'),
    totalPages: z.int().describe('How many pages there are.'),
  })
  .meta({ id: 'Pagination' })

/** The schema of a list's answer. */
export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ data: z.array(item), meta: z.strictObject({ pagination }) })

/** The schema of one object's answer. */
export const oneOf = <Item extends z.ZodType>(item: Item) => z.strictObject({ data: item, meta: z.strictObject({}) })

/** The answer of a list: the items of the page, and `count` of all pages. */
export function paginate<Item>(page: Page, items: readonly Item[], count: number) {
  const { pageNumber, pageSize } = page
  const totalPages = Math.ceil(count / pageSize)
  const nextPage = pageNumber < totalPages ? pageNumber + 1 : null
  return { data: [...items], meta: { pagination: { pageNumber, count, pageSize, nextPage, totalPages } } }
}

/** The answer of one object. */
export const one = <Item>(item: Item) => ({ data: item, meta: {} })
