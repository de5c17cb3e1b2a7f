import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { backUp, checkBackup } from '../../src/backup.ts'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { codeOf } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { restore, shownKeyRing } from '../../src/restore.ts'
import { addKey, formatKeyRing, newKey, newKeyRing, parseKeyRing, promoteKey } from '../../src/secrets/key-ring.ts'
import { formatBackup } from '../../src/store/backup-format.ts'
import { openDatabase } from '../../src/store/database.ts'
import { dumpTables, readSchemaHistory } from '../../src/store/dump-tables.ts'
import { migrate } from '../../src/store/migrate.ts'
import { migrations } from '../../src/store/migrations.ts'
import { laggingPairs } from '../../src/store/pairs.ts'
import { resume } from '../../src/store/pause.ts'
import { createTestDatabase } from '../helpers/database.ts'
import { storedSecrets, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, givenSecretOf, keyOf, objectsOf, ordersPortal, snapshotOf } from './reconcile-fixtures.ts'

const PASSPHRASE = new Secret('a long enough passphrase, äöü 中')
const APPS = ['app-one', 'app-two', 'app-three']

const opened = new Disposer()
afterEach(() => opened.dispose())

let mesh: TestMesh
let directory: string
let file: string
const lasting = new Disposer()
beforeAll(async () => {
  directory = await newDirectory(lasting)
  file = join(directory, 'store.backup')
  mesh = await withMesh({
    portal: (brokers) =>
      ordersPortal(
        brokers,
        APPS.map((id) => client(id)),
      ),
  })
  lasting.defer(() => mesh[Symbol.asyncDispose]())
  await mesh.sweep()
  await backUp(mesh.context, file, PASSPHRASE)
})
afterAll(() => lasting.dispose())

async function newDirectory(disposer: Disposer): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'keymesh-backup-'))
  disposer.defer(() => rm(made, { recursive: true, force: true }))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(made, 0o711)
  return made
}

const configOf = (env: Readonly<Record<string, string>>) =>
  toConfig({
    env: { KEYMESH_LOG_LEVEL: 'silent', KEYMESH_LOGINS: 'false', ...env },
    pid: process.pid,
    hostname: 'restored',
  })

/** An empty database with the key ring of the mesh. */
async function emptyDatabase(env: Readonly<Record<string, string>> = {}) {
  const database = await createTestDatabase({ migrated: false })
  opened.defer(() => database.drop())
  const config = configOf({
    DATABASE_URL: database.connectionString,
    KEYMESH_KEYS: String(mesh.env.KEYMESH_KEYS),
    ...env,
  })
  return { database, config, open: () => openIn(config) }
}

async function openIn(config: ReturnType<typeof configOf>): Promise<Context> {
  const context = await openContext(config)
  opened.defer(() => context[Symbol.asyncDispose]())
  return context
}

/** Of every row of every table but those that a restore settles. */
async function contentOf(connectionString: string): Promise<Readonly<Record<string, string>>> {
  const settled = ['pairs', 'ledger', 'broker_status', 'users', 'pauses', 'login_verdicts', 'login_controls']
  const connection = new pg.Client({ connectionString })
  await connection.connect()
  try {
    const { rows } = await connection.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    )
    const content: Record<string, string> = {}
    for (const { name } of rows.filter((row) => !settled.includes(row.name) && row.name !== 'schema_migrations')) {
      const answer = await connection.query<{ row: string }>(`select t::text as row from "${name}" t order by 1`)
      const text = answer.rows.map(({ row }) => row).join('\n')
      content[name] = `${answer.rowCount} ${createHash('sha256').update(text).digest('hex')}`
    }
    return content
  } finally {
    await connection.end()
  }
}

describe('a backup', () => {
  it('is a new file of its owner alone, and says what is in it', async () => {
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await checkBackup(file)).toMatchObject({
      schemaVersion: migrations.at(-1)?.version,
      holdsKeyRing: true,
      sealedWith: [mesh.context.keyRing.current],
    })
    await expect(backUp(mesh.context, file, null)).rejects.toThrow('exists already')
  })

  it('holds no secret and no key in clear text', async () => {
    const text = gunzipSync(await readFile(file)).toString('utf8')
    expect(text).toContain(keyOf('app-one'))
    for (const app of APPS) expect(text).not.toContain(givenSecretOf(app))
    for (const key of mesh.context.keyRing.keys.values()) expect(text).not.toContain(key.export().toString('base64url'))
  })

  it('is refused a passphrase that is soon guessed, and leaves no file', async () => {
    const path = join(directory, 'short.backup')
    await expect(backUp(mesh.context, path, new Secret('short'))).rejects.toThrow('at least 12')
    expect(await readdir(directory)).toEqual(['store.backup'])
  })
})

/** What a command prints. Throws when it does not end well. */
async function keymesh(env: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<string> {
  const settings = { PATH: String(process.env.PATH), HOME: '/nonexistent', KEYMESH_LOG_LEVEL: 'silent', ...env }
  const program = join(inject('testProgramsDirectory'), 'src/main.js')
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...words], { env: settings })
  return stdout
}

describe('the commands', { timeout: 120_000 }, () => {
  it('back up, check, show the key ring and restore, and say where the keys are', async () => {
    const where = await newDirectory(opened)
    const passphrase = { BACKUP_PASSPHRASE: PASSPHRASE.reveal() }
    const named = ['--passphrase-env', 'BACKUP_PASSPHRASE']
    const [without, withRing] = [join(where, 'without.backup'), join(where, 'with.backup')]
    expect(await keymesh(mesh.env, 'backup', without)).toContain(`The key ring is NOT in it`)
    expect(await keymesh({ ...mesh.env, ...passphrase }, 'backup', withRing, ...named)).toContain(
      'The key ring is in it',
    )
    expect(await keymesh({}, 'restore', withRing, '--check')).toContain(mesh.context.keyRing.current)
    const shown = await keymesh(passphrase, 'restore', withRing, ...named, '--show-keys')
    expect(parseKeyRing(new Secret(shown), 'the command')).toEqual(mesh.context.keyRing)

    const { config, database } = await emptyDatabase()
    const env = { DATABASE_URL: database.connectionString, KEYMESH_KEYS: shown.trim() }
    const report = JSON.parse(await keymesh(env, 'restore', without, '--json'))
    expect(report).toMatchObject({ secrets: APPS.length + 1, keyRingFile: null })
    expect(await storedSecrets(await openIn(config))).toEqual(await mesh.secrets())
  })

  it('show a ring of several keys with the current one first', async () => {
    const [first, second] = [newKey(), newKey()]
    const ring = promoteKey(
      addKey({ current: first.kid, keys: new Map([[first.kid, first.key]]) }, second.kid, second.key),
      second.kid,
    )
    const path = join(await newDirectory(opened), 'two.backup')
    await backUp({ ...mesh.context, keyRing: ring }, path, PASSPHRASE)
    expect(parseKeyRing(await shownKeyRing(path, PASSPHRASE), 'the backup')).toMatchObject({ current: second.kid })
  })
})

describe('a restore', { timeout: 120_000 }, () => {
  it('into a new data directory brings rows, secrets and the key ring back', async () => {
    const dataDirectory = join(await newDirectory(opened), 'data')
    const config = configOf({ KEYMESH_DATA_DIR: dataDirectory })
    const report = await restore(config, file, PASSPHRASE)
    // Three credentials and the management password of the broker.
    expect(report).toMatchObject({ secrets: APPS.length + 1, keyRingFile: join(dataDirectory, 'keys.json') })
    expect((await stat(join(dataDirectory, 'keys.json'))).mode & 0o777).toBe(0o600)
    const context = await openIn(config)
    expect(await storedSecrets(context)).toEqual(await mesh.secrets())
    expect(await contentOf(context.connectionString)).toEqual(await contentOf(mesh.database.connectionString))
    // Numbered rows go on after the restored ones.
    const { rows } = await mesh.database.pool.query('select coalesce(max(id), 0) as last from drift')
    const drift = await context.db
      .selectFrom('drift')
      .select(({ fn }) => fn.max('id').as('last'))
      .executeTakeFirst()
    expect(Number(drift?.last ?? 0)).toBe(Number(rows[0].last))
  })

  it('writes nothing to a broker before a person resumes, then looks at every pair and writes every password', async () => {
    const { config, open } = await emptyDatabase()
    await restore(config, file, null)
    const context = await open()
    const { accountId } = context
    expect(await laggingPairs(context.db, 100)).toEqual([])
    // Since the backup: a new password, an object of a newer registration, one of ours lost.
    const { state } = mesh.broker()
    const before = snapshotOf(mesh.broker())
    state.setPassword(keyOf('app-one'), 'of-a-later-version')
    const { queue } = objectsOf(mesh.broker(), 'app-two')
    state.queues.remove(queue)
    expect(state.checkLogin(keyOf('app-one'), givenSecretOf('app-one'))).not.toBe('accepted')
    const writes = mesh.writes()
    const plans: string[] = []
    for await (const plan of context.engine.planBroker(mesh.key()))
      plans.push(...plan.steps.map((step) => step.action.type))
    expect(plans.length).toBeGreaterThan(APPS.length - 1)
    expect(mesh.writes()).toBe(writes)

    await resume(context.db, { accountId, registrationId: null })
    expect(await laggingPairs(context.db, 100)).toHaveLength(APPS.length)
    for (const id of APPS) await context.engine.reconcilePair(mesh.pair(id), { trigger: 'poll' })
    expect(snapshotOf(mesh.broker())).toEqual(before)
    expect(await laggingPairs(context.db, 100)).toEqual([])
  })

  it('begins the grace period of what was withdrawn anew, and forgets leases, sick brokers and confirmations', async () => {
    const { database, config } = await emptyDatabase()
    const source = await createTestDatabase({ migrated: false })
    opened.defer(() => source.drop())
    await restore(
      configOf({ DATABASE_URL: source.connectionString, KEYMESH_KEYS: String(mesh.env.KEYMESH_KEYS) }),
      file,
      null,
    )
    await source.pool.query(`
      delete from pauses;
      update ledger set withdrawn_at = now() - interval '30 days' where name = '${keyOf('app-three')}';
      update pairs set lease_holder = 'gone', lease_until = now() + interval '1 hour', withdrawal_confirmed = true,
        disruptive_allowed_until = now() + interval '1 hour', due_at = now() + interval '1 day';
      update broker_status set health = 'open', failures = 9, retry_at = now() + interval '1 hour', prober = 'gone'`)
    const path = join(await newDirectory(opened), 'odd.backup')
    await backUp(
      await openIn(configOf({ DATABASE_URL: source.connectionString, KEYMESH_KEYS: String(mesh.env.KEYMESH_KEYS) })),
      path,
      null,
    )
    await restore(config, path, null)
    const { rows } = await database.pool.query(`
      select (select min(withdrawn_at) > now() - interval '1 hour' from ledger where withdrawn_at is not null) as anew,
        (select count(*) from ledger where withdrawn_at is not null) as withdrawn,
        (select count(*) from pairs where lease_until is null and due_at <= now() and not withdrawal_confirmed
          and disruptive_allowed_until is null) as free,
        (select count(*) from broker_status where health = 'closed' and failures = 0 and prober is null) as well,
        (select paused_by like 'restore of the backup of %' from pauses) as paused`)
    expect(rows).toEqual([{ anew: true, withdrawn: 1, free: APPS.length, well: 1, paused: true }])
  })

  it('of an older backup migrates it, whatever the order of its tables', async () => {
    const old = await createTestDatabase({ migrated: false })
    opened.defer(() => old.drop())
    const early = migrations.slice(0, 4)
    await migrate(old.pool, early)
    await old.pool.query(`
      insert into accounts (id, name) values ('a', E'odd "name" \\\\ with\\ttabs\\nand lines');
      insert into users (id, name, password_hash) values ('u', 'ann', 'hash');
      insert into memberships (user_id, account_id, roles) values ('u', 'a', '{admin,"with, comma"}');
      insert into audit (at, actor_kind, actor_name, action, subject, outcome)
        values ('2026-03-04 05:06:07.123456+02', 'host', 'x', 'y', 'z', 'done')`)
    const path = join(await newDirectory(opened), 'old.backup')
    await writeFile(path, await dumped(old.connectionString))
    const { database, config } = await emptyDatabase()
    expect(await restore(config, path, null)).toMatchObject({ schemaVersion: migrations.at(-1)?.version, secrets: 0 })
    const { rows } = await database.pool.query(`select a.name, m.roles, t.at = '2026-03-04 03:06:07.123456Z' as exact
      from accounts a, memberships m, audit t`)
    expect(rows).toEqual([
      { name: 'odd "name" \\ with\ttabs\nand lines', roles: ['admin', 'with, comma'], exact: true },
    ])
    const next = await database.pool.query(
      "insert into audit (at, actor_kind, actor_name, action, subject, outcome) values (now(), 'host', 'x', 'y', 'z', 'done') returning id",
    )
    expect(next.rows).toEqual([{ id: 2 }])
  })
})

/** As a program of that time would have written it. */
async function dumped(connectionString: string): Promise<Buffer> {
  const { db, close } = openDatabase({ connectionString, maxConnections: 1, onIdleError: () => undefined })
  try {
    return await db.transaction().execute(async (trx) => {
      const schema = [...(await readSchemaHistory(trx))]
      const header = { createdAt: new Date(0).toISOString(), schema, sealedWith: [], keyRing: null }
      const parts = async function* () {
        yield { kind: 'header', header } as const
        yield* dumpTables(trx)
      }
      let text = ''
      for await (const line of formatBackup(parts())) text += line
      return gzipSync(text)
    })
  } finally {
    await close()
  }
}

interface Refusal {
  readonly code: string
  readonly file?: (whole: Buffer) => Buffer
  readonly env?: () => Readonly<Record<string, string>>
}

const relined = (whole: Buffer, change: (lines: string[]) => string[]): Buffer =>
  gzipSync(change(gunzipSync(whole).toString('utf8').split('\n')).join('\n'))

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a file that is cut short': { code: 'BACKUP_DAMAGED', file: (whole) => whole.subarray(0, whole.length - 20) },
  'a file that is cut short and packed again': {
    code: 'BACKUP_DAMAGED',
    file: (whole) => relined(whole, (lines) => lines.slice(0, -2)),
  },
  'a file with one byte changed': {
    code: 'BACKUP_DAMAGED',
    file: (whole) => {
      const changed = Buffer.from(whole)
      changed[Math.floor(whole.length / 2)] = (changed[Math.floor(whole.length / 2)] ?? 0) ^ 0x10
      return changed
    },
  },
  'a file with a row changed': {
    code: 'BACKUP_DAMAGED',
    file: (whole) => relined(whole, (lines) => lines.map((line) => line.replace('key-of-app-one', 'key-of-app-two'))),
  },
  'a file with a row left out': {
    code: 'BACKUP_DAMAGED',
    file: (whole) => relined(whole, (lines) => lines.filter((line) => !line.includes('"app-two"'))),
  },
  'a file that is something else': { code: 'BACKUP_FOREIGN', file: () => Buffer.from('-- PostgreSQL database dump\n') },
  'an empty file': { code: 'BACKUP_DAMAGED', file: () => Buffer.alloc(0) },
  'packed text that is something else': { code: 'BACKUP_FOREIGN', file: () => gzipSync('{"keymesh":"portal"}\n') },
  'a backup of a later format': {
    code: 'BACKUP_TOO_NEW',
    file: (whole) => relined(whole, (lines) => lines.map((line) => line.replace('"format":1', '"format":2'))),
  },
  'a backup of a later program': {
    code: 'BACKUP_TOO_NEW',
    file: (whole) => withHeader(whole, { schema: [...migrations, { version: 9999, name: 'later' }] }),
  },
  'a key ring that lacks a key': {
    code: 'KEY_MISSING',
    env: () => ({ KEYMESH_KEYS: formatKeyRing(newKeyRing()).reveal() }),
  },
  'a key ring with another key of the same name': {
    code: 'SECRET_UNREADABLE',
    env: () => ({
      KEYMESH_KEYS: `${mesh.context.keyRing.current}:${newKey().key.export().toString('base64url')}`,
    }),
  },
}

/** A whole file in every other respect. */
function withHeader(whole: Buffer, change: object): Buffer {
  const [first = '', ...lines] = gunzipSync(whole).toString('utf8').trimEnd().split('\n')
  const end = JSON.parse(lines.pop() ?? '')
  const before = [JSON.stringify({ ...JSON.parse(first), ...change }), ...lines].map((line) => `${line}\n`).join('')
  const sha256 = createHash('sha256').update(before).digest('hex')
  return gzipSync(`${before}${JSON.stringify({ ...end, sha256 })}\n`)
}

describe('a restore is refused, with nothing written,', { timeout: 120_000 }, () => {
  it.each(Object.entries(REFUSALS))('for %s', async (_what, refusal) => {
    const path = join(await newDirectory(opened), 'given.backup')
    const whole = await readFile(file)
    await writeFile(path, refusal.file?.(whole) ?? whole)
    const { database, config } = await emptyDatabase(refusal.env?.())
    const error: unknown = await restore(config, path, null).catch((thrown: unknown) => thrown)
    expect(codeOf(error)).toBe(refusal.code)
    const { rows } = await database.pool.query("select from pg_class where relnamespace = 'public'::regnamespace")
    expect(rows).toEqual([])
  })

  it('over a store that is there', async () => {
    const config = configOf({
      DATABASE_URL: mesh.database.connectionString,
      KEYMESH_KEYS: String(mesh.env.KEYMESH_KEYS),
    })
    const before = await contentOf(mesh.database.connectionString)
    await expect(restore(config, file, PASSPHRASE)).rejects.toMatchObject({ code: 'DATABASE_NOT_EMPTY' })
    expect(await contentOf(mesh.database.connectionString)).toEqual(before)
  })

  it.each([
    ['no passphrase', null, 'PASSPHRASE_MISSING'],
    ['another passphrase', new Secret('another long passphrase'), 'PASSPHRASE_WRONG'],
  ])('with %s, before a data directory is made', async (_what, passphrase, code) => {
    const dataDirectory = join(await newDirectory(opened), 'data')
    const error: unknown = await restore(configOf({ KEYMESH_DATA_DIR: dataDirectory }), file, passphrase).catch(
      (thrown: unknown) => thrown,
    )
    expect(codeOf(error)).toBe(code)
    await expect(stat(dataDirectory)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('without the key ring, when the backup does not hold it', async () => {
    const path = join(await newDirectory(opened), 'ringless.backup')
    expect(await backUp(mesh.context, path, null)).toMatchObject({ holdsKeyRing: false })
    const dataDirectory = join(await newDirectory(opened), 'data')
    await expect(restore(configOf({ KEYMESH_DATA_DIR: dataDirectory }), path, null)).rejects.toMatchObject({
      code: 'KEY_RING_NOT_IN_BACKUP',
      message: expect.stringContaining(mesh.context.keyRing.current),
    })
    expect(parseKeyRing(new Secret(String(mesh.env.KEYMESH_KEYS)), 'the test').current).toBe(
      mesh.context.keyRing.current,
    )
  })
})
