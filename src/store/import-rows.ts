import { sql } from 'kysely'

/** Rows of these ids, or all. */
export const isOneOf = (column: 'id' | 'product_id', ids: readonly string[] | undefined) =>
  ids === undefined ? sql<boolean>`true` : sql<boolean>`${sql.ref(column)} = any(${ids})`

export function grouped<Row>(rows: readonly Row[], keyOf: (row: Row) => string): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}

export const byId = <Row extends { readonly id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> =>
  new Map(rows.map((row) => [row.id, row]))
