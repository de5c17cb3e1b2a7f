import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, cp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isRoot, nobody, query, serversOf, until, withEmbedded } from '../helpers/embedded-postgres.ts'

const embedded = withEmbedded()

describe('after a crash', () => {
  it('leaves no server within seconds of a kill -9 under load, and holds what was committed', async () => {
    const child = embedded().startChild({ write: true })
    const { clusterDirectory } = await child.line('ready')
    await until('some rows are committed', () => (child.lines.length > 50 ? true : null))
    await child.kill()
    const killedAt = performance.now()
    await until('no server runs', async () => ((await serversOf(String(clusterDirectory))).length === 0 ? true : null))
    expect(performance.now() - killedAt).toBeLessThan(5_000)
    const committed = Number(child.lines.at(-1)?.committed)
    const { connectionString } = await embedded().start()
    const [row] = await query(connectionString, 'select count(*)::int as count, max(number) as newest from load')
    expect(row?.count).toBe(row?.newest)
    expect([committed, committed + 1]).toContain(row?.newest)
  })

  it('hands over at once to a process that starts while the server of a killed one still stops', async () => {
    await embedded().usePrepared()
    const child = embedded().startChild({ write: true })
    await child.line('committed')
    const [, database] = await Promise.all([child.kill(), embedded().start()])
    // It may have joined in the last moment of the killed one: then the next start takes over.
    const connectionString = database.joined ? (await embedded().start()).connectionString : database.connectionString
    expect((await query(connectionString, 'select count(*)::int as count from load'))[0]?.count).toBeGreaterThan(0)
  })

  it('stops an orphan whose watchdog was killed as well', async () => {
    await embedded().usePrepared()
    const child = embedded().startChild({ write: true })
    const cluster = String((await child.line('ready')).clusterDirectory)
    await child.line('committed')
    const [postmaster] = (await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')
    for (const pid of await serversOf(cluster)) if (pid !== Number(postmaster)) process.kill(pid, 'SIGKILL')
    await child.kill()
    expect(await serversOf(cluster)).toContain(Number(postmaster))
    const database = await embedded().start()
    expect(await serversOf(cluster)).not.toContain(Number(postmaster))
    expect(
      (await query(database.connectionString, 'select count(*)::int as count from load'))[0]?.count,
    ).toBeGreaterThan(0)
  })

  it('takes no foreign process for its server when postmaster.pid names it, and leaves that alone', async () => {
    await embedded().usePrepared()
    const clusterDirectory = join(embedded().dataDirectory, 'postgres/data')
    const stranger = spawn('sleep', ['60'], { ...(isRoot ? nobody : {}), stdio: 'ignore' })
    embedded().release(async () => {
      const ended = once(stranger, 'exit')
      stranger.kill('SIGKILL')
      await ended
    })
    await once(stranger, 'spawn')
    const file = join(clusterDirectory, 'postmaster.pid')
    const lines = [stranger.pid, clusterDirectory, 1_700_000_000, 5432, '', '127.0.0.1', '', 'ready', '']
    await writeFile(file, lines.join('\n'), { mode: 0o600 })
    if (isRoot) await chown(file, nobody.uid, nobody.gid)
    expect(await query((await embedded().start()).connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull()
  })

  it('begins anew when it was killed inside initdb', async () => {
    await embedded().usePrepared()
    const home = join(embedded().dataDirectory, 'postgres')
    const record = JSON.parse(await readFile(join(home, 'cluster.json'), 'utf8'))
    await writeFile(join(home, 'cluster.json'), JSON.stringify({ ...record, initialised: false }))
    await cp(join(home, 'data'), join(home, 'initdb-draft.cut'), { recursive: true })
    await rm(join(home, 'data'), { recursive: true })
    expect(await query((await embedded().start()).connectionString, 'select 1 as one')).toEqual([{ one: 1 }])
    expect((await readdir(home)).filter((name) => name.startsWith('initdb'))).toEqual([])
  })
})
