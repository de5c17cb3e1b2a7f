// Writes the tables that the code holds into the documents: `npm run docs`.
import { readFileSync, writeFileSync } from 'node:fs'
import { DOCUMENT_TABLES, withTable } from './document-tables.ts'

for (const table of DOCUMENT_TABLES) {
  const path = new URL(`../${table.document}`, import.meta.url)
  writeFileSync(path, withTable(readFileSync(path, 'utf8'), table))
}
