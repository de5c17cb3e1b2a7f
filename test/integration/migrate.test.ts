import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { type MigrateOutcome, migrate } from '../../src/store/migrate.ts'
import { type Migration, migrations } from '../../src/store/migrations.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts'

const one: Migration = { version: 1, name: 'things', sql: 'create table things (id integer primary key)' }
const two: Migration = { version: 2, name: 'names', sql: 'alter table things add column name text' }
const three: Migration = { version: 3, name: 'sizes', sql: 'alter table things add column size integer' }
const breaking: Migration = { version: 2, name: 'rename', sql: 'alter table things rename to items', breaking: true }

async function onEmpty(use: (database: TestDatabase) => Promise<void>): Promise<void> {
  const database = await createTestDatabase({ migrated: false })
  try {
    await use(database)
  } finally {
    await database.drop()
  }
}

describe('migrate', () => {
  it('applies what is missing, in order, and records it', async () => {
    await onEmpty(async ({ pool }) => {
      expect(await migrate(pool, [one])).toEqual({ applied: [1], schemaVersion: 1, ahead: [] })
      expect(await migrate(pool, [one, two, three])).toEqual({ applied: [2, 3], schemaVersion: 3, ahead: [] })
      expect(await migrate(pool, [one, two, three])).toEqual({ applied: [], schemaVersion: 3, ahead: [] })
      const { rows } = await pool.query('select version, name, breaking, applied_at from schema_migrations order by 1')
      expect(rows.map(({ version, name }) => [version, name])).toEqual([
        [1, 'things'],
        [2, 'names'],
        [3, 'sizes'],
      ])
      expect(rows.every((row) => row.breaking === false && row.applied_at instanceof Date)).toBe(true)
    })
  })

  it('applies the real schema to an empty database', async () => {
    await onEmpty(async ({ pool }) => {
      const outcome = await migrate(pool, migrations)
      expect(outcome.applied).toEqual(migrations.map(({ version }) => version))
    })
  })

  it('applies each migration once when many programs start together', async () => {
    await onEmpty(async ({ connectionString, pool }) => {
      const slow: Migration = { ...two, sql: `${two.sql}; select pg_sleep(0.05)` }
      const pools = Array.from({ length: 6 }, () => new pg.Pool({ connectionString, max: 2 }))
      let outcomes: MigrateOutcome[]
      try {
        outcomes = await Promise.all(pools.map((each) => migrate(each, [one, slow, three])))
      } finally {
        await Promise.all(pools.map((each) => each.end()))
      }
      expect(outcomes.flatMap(({ applied }) => applied).sort()).toEqual([1, 2, 3])
      expect(outcomes.every(({ schemaVersion }) => schemaVersion === 3)).toBe(true)
      expect((await pool.query('select count(*)::int as n from schema_migrations')).rows).toEqual([{ n: 3 }])
    })
  })

  it('keeps nothing of a migration that fails, and goes on from there once it is mended', async () => {
    await onEmpty(async ({ pool }) => {
      const bad: Migration = { ...two, sql: `${two.sql}; insert into nowhere values (1)` }
      await expect(migrate(pool, [one, bad, three])).rejects.toMatchObject({
        code: 'MIGRATION_FAILED',
        fate: 'stop',
        message: expect.stringContaining('2 (names)'),
      })
      expect((await pool.query('select * from things')).fields.map(({ name }) => name)).toEqual(['id'])
      expect(await migrate(pool, [one, two, three])).toMatchObject({ applied: [2, 3] })
    })
  })

  const older: { title: string; database: Migration[]; program: Migration[]; code: string | null }[] = [
    {
      title: 'lets a program start that is one step behind',
      database: [one, two],
      program: [one],
      code: null,
    },
    {
      title: 'refuses a program that is two steps behind',
      database: [one, two, three],
      program: [one],
      code: 'SCHEMA_TOO_NEW',
    },
    {
      title: 'refuses a program that does not know a breaking step',
      database: [one, breaking],
      program: [one],
      code: 'SCHEMA_TOO_NEW',
    },
    {
      title: 'refuses a database whose step of the same version is another one',
      database: [one, two],
      program: [one, { ...two, name: 'other' }, three],
      code: 'SCHEMA_DIVERGED',
    },
    {
      title: 'refuses a database that passed over a step',
      database: [one, three],
      program: [one, two, three],
      code: 'SCHEMA_DIVERGED',
    },
  ]
  it.each(older)('$title', async ({ database, program, code }) => {
    await onEmpty(async ({ pool }) => {
      await migrate(pool, database)
      const attempt = migrate(pool, program)
      if (code === null) expect(await attempt).toEqual({ applied: [], schemaVersion: 2, ahead: [2] })
      else await expect(attempt).rejects.toMatchObject({ code, fate: 'stop', hint: expect.any(String) })
      const { rows } = await pool.query<{ version: number }>('select version from schema_migrations order by 1')
      expect(rows.map(({ version }) => version)).toEqual(database.map(({ version }) => version))
    })
  })

  it('refuses a list that is not in order', async () => {
    await onEmpty(async ({ pool }) => {
      await expect(migrate(pool, [two, one])).rejects.toThrow('ascending order')
    })
  })
})
