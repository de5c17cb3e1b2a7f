import { type Page, paginate } from '../pagination.ts'

interface SortedPage<Field extends string> extends Page {
  readonly sortFieldName?: Field | undefined
  readonly sortDirection: 'asc' | 'desc'
}

/** One page of a list that is in memory as a whole; in its own order unless sorted, texts by code units. */
export function pageOf<Field extends string, Item>(
  items: readonly Item[],
  query: SortedPage<Field>,
  textOf: (item: Item, field: Field) => string,
) {
  const { sortFieldName: field, sortDirection, pageNumber, pageSize } = query
  const ascending =
    field === undefined
      ? [...items]
      : items.toSorted((one, other) => compared(textOf(one, field), textOf(other, field)))
  const ordered = sortDirection === 'asc' ? ascending : ascending.toReversed()
  const start = (pageNumber - 1) * pageSize
  return paginate(query, ordered.slice(start, start + pageSize), items.length)
}

const compared = (one: string, other: string): number => (one < other ? -1 : Number(one > other))
