/** Rows per statement: far from the 65,535 parameters that PostgreSQL takes. */
const CHUNK_SIZE = 1000

/** Runs one statement per chunk, one after the other. */
export async function inChunks<Row>(
  rows: readonly Row[],
  write: (chunk: readonly Row[]) => Promise<unknown>,
  size = CHUNK_SIZE,
): Promise<void> {
  for (let start = 0; start < rows.length; start += size) await write(rows.slice(start, start + size))
}
