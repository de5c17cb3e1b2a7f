import pg from 'pg'
import { expect, it } from 'vitest'
import { createTestDatabase, withDatabase } from '../helpers/database.ts'

const database = withDatabase()

it('gives each file a migrated database of its own', async () => {
  const { rows } = await database().pool.query('select count(*)::int as n from schema_migrations')
  expect(rows[0].n).toBeGreaterThan(0)
})

it('fails when a connection is left open', async () => {
  const other = await createTestDatabase({ leakWaitMs: 200 })
  const leaked = new pg.Client({ connectionString: other.connectionString, application_name: 'leaky' })
  leaked.on('error', () => undefined)
  await leaked.connect()
  await expect(other.drop()).rejects.toThrow(/1 connections.*\n.*leaky/)
  await leaked.end().catch(() => undefined)
})
