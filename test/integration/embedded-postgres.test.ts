import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { query, serversOf, until, withEmbedded } from '../helpers/embedded-postgres.ts'

const embedded = withEmbedded()

describe('the embedded database', () => {
  it('is made, served on the loopback with a password, and serves what it held after a restart', async () => {
    const first = await embedded().start()
    const settings = `select current_setting('server_encoding') as encoding, current_setting('max_connections') as most,
      current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets,
      (select datlocale from pg_database where datname = current_database()) as locale, lower('ÄÉ') as lower`
    expect(await query(first.connectionString, settings)).toEqual([
      { encoding: 'UTF8', most: '200', addresses: '127.0.0.1', sockets: '', locale: 'C.UTF-8', lower: 'äé' },
    ])
    const wrong = new URL(first.connectionString)
    wrong.password = 'wrong'
    await expect(query(wrong.href, 'select 1')).rejects.toThrow('password authentication failed')
    await query(first.connectionString, 'create table kept as select 42 as number')
    await first.stop()
    await first.stop()
    await until('no server runs', async () => ((await serversOf(first.clusterDirectory)).length === 0 ? true : null))
    const second = await embedded().start()
    expect(await query(second.connectionString, 'select number from kept')).toEqual([{ number: 42 }])
  })

  it('is durable unless told otherwise', async () => {
    await embedded().usePrepared()
    const database = await embedded().start({ unsafeFast: false, maxConnections: 50 })
    const sql = "select name, setting from pg_settings where name = any('{fsync,full_page_writes,max_connections}')"
    expect(await query(database.connectionString, `${sql} order by name`)).toEqual([
      { name: 'fsync', setting: 'on' },
      { name: 'full_page_writes', setting: 'on' },
      { name: 'max_connections', setting: '50' },
    ])
  })

  it('keeps its files and passwords from other users', async () => {
    await embedded().usePrepared()
    const { clusterDirectory } = await embedded().start()
    const home = dirname(clusterDirectory)
    expect((await stat(clusterDirectory)).mode & 0o077).toBe(0)
    for (const name of await readdir(home)) {
      if (name === basename(clusterDirectory)) continue
      expect((await stat(join(home, name))).mode & 0o077, name).toBe(0)
    }
    // To pass through, not to list.
    expect((await stat(embedded().dataDirectory)).mode & 0o066).toBe(0)
  })

  it('is joined by other starts on the same data directory, here and in other processes', async () => {
    const [one, two] = await Promise.all([embedded().start(), embedded().start()])
    expect([one.joined, two.joined].sort()).toEqual([false, true])
    const child = embedded().startChild()
    const { joined, connectionString } = await child.line('ready')
    expect({ joined, connectionString }).toEqual({ joined: true, connectionString: one.connectionString })
    await child.end()
    const joiner = one.joined ? one : two
    await joiner.stop()
    expect(await query(one.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('says when the server ends by itself, and starts again', async () => {
    await embedded().usePrepared()
    const database = await embedded().start()
    const [pid] = (await readFile(join(database.clusterDirectory, 'postmaster.pid'), 'utf8')).split('\n')
    process.kill(Number(pid), 'SIGKILL')
    expect(await database.lost).toMatchObject({ code: 'DATABASE_LOST', message: expect.stringContaining('SIGKILL') })
    await database.stop()
    expect(await query((await embedded().start()).connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  it('starts with a locale that is not installed', async () => {
    const locale = 'xx_YY.ISO-8859-99'
    const child = embedded().startChild({ env: { LANG: locale, LC_ALL: locale, LC_MESSAGES: locale } })
    const { connectionString } = await child.line('ready')
    expect(await query(connectionString, "select lower('Ä') as lower")).toEqual([{ lower: 'ä' }])
    await child.end()
  })
})

describe('what it refuses', () => {
  const homeFile = (name: string): string => join(embedded().dataDirectory, 'postgres', name)
  const cases: { title: string; harm: () => Promise<void>; code: string; says: string }[] = [
    {
      title: 'a cluster of another major version',
      harm: () => writeFile(homeFile('data/PG_VERSION'), '17\n'),
      code: 'DATABASE_VERSION',
      says: 'PostgreSQL 17',
    },
    {
      title: 'a cluster that is gone, rather than begin empty',
      harm: () => rm(homeFile('data'), { recursive: true }),
      code: 'DATABASE_MISSING',
      says: 'is gone',
    },
    {
      title: 'a record that is cut short',
      harm: () => writeFile(homeFile('cluster.json'), '{"passw'),
      code: 'DATABASE_RECORD_MISSING',
      says: 'cut short',
    },
  ]
  it.each(cases)('refuses $title, and lets go of the lock', async ({ harm, code, says }) => {
    await embedded().usePrepared()
    await harm()
    for (const _attempt of [1, 2]) {
      await expect(embedded().start()).rejects.toMatchObject({
        code,
        fate: 'stop',
        message: expect.stringContaining(says),
        hint: expect.any(String),
      })
    }
  })

  it('says what is wrong with a data directory that is a file', async () => {
    await writeFile(embedded().dataDirectory, '')
    await expect(embedded().start()).rejects.toMatchObject({
      code: 'DATABASE_START',
      message: expect.stringContaining(embedded().dataDirectory),
    })
  })

  it('says so when PostgreSQL itself refuses, with the reason', async () => {
    await embedded().usePrepared()
    await writeFile(join(embedded().dataDirectory, 'postgres/data/postgresql.conf'), 'no_such_setting = 1\n')
    await expect(embedded().start()).rejects.toMatchObject({
      code: 'DATABASE_START',
      message: expect.stringContaining('no_such_setting'),
    })
  })
})
