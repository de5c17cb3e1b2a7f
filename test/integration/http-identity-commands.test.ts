import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { createFirstAdministrator } from '../../src/cli/first-administrator.ts'
import { createOutput } from '../../src/cli/output.ts'
import { usersCommand } from '../../src/cli/users.ts'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Secret } from '../../src/domain/secret.ts'
import { rotateKeys } from '../../src/key-rotation.ts'
import { followKeyRing } from '../../src/secrets/following-key-ring.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { writeKeyRingFile } from '../../src/secrets/key-ring-file.ts'
import { createUserTokens } from '../../src/secrets/user-tokens.ts'
import { findUserByName } from '../../src/store/users.ts'
import { withDatabase } from '../helpers/database.ts'

const database = withDatabase()
const keys = formatKeyRing(newKeyRing()).reveal()
const contexts: Context[] = []

async function contextWith(env: Readonly<Record<string, string>> = {}): Promise<Context> {
  const settings = { DATABASE_URL: database().connectionString, KEYMESH_KEYS: keys, ...env }
  const config = toConfig({ env: settings, pid: 1, hostname: 'test' })
  const context = await openContext(config, { log: pino({ level: 'silent' }) })
  contexts.push(context)
  return context
}

let context: Context
beforeAll(async () => {
  context = await contextWith({ PASSWORD_OF_BEA: 'the password of bea', SHORT: 'short' })
})
beforeEach(async () => {
  await context.db.deleteFrom('users').execute()
  await context.db.deleteFrom('audit').execute()
})
afterAll(async () => {
  for (const each of contexts) await each[Symbol.asyncDispose]()
})

async function run(context: Context, ...argv: string[]): Promise<string> {
  let out = ''
  const streams = { out: { write: (text: string) => (out += text) }, err: { write: () => undefined } }
  const dependencies: CommandDependencies = {
    withContext: (work) => work(context),
    output: (command) => createOutput(streams, { json: command.opts<{ json?: boolean }>().json === true }),
    exitWith: () => undefined,
    signal: new AbortController().signal,
  }
  const program = new Command('keymesh').exitOverride().configureOutput({ writeErr: () => undefined })
  const users = usersCommand(dependencies)
  for (const command of [users, ...users.commands]) command.copyInheritedSettings(program)
  await program.addCommand(users).parseAsync(['users', ...argv], { from: 'user' })
  return out
}

async function passwordIs(context: Context, name: string, password: string): Promise<boolean> {
  const found = await findUserByName(context.db, name)
  return await context.passwords.verify(found?.passwordHash ?? null, new Secret(password))
}

describe('the first administrator', () => {
  const printed: string[] = []
  const output = { json: false, document: () => undefined, line: (text = '') => void printed.push(text) }
  afterEach(() => printed.splice(0))

  it('is made with a password that is printed once and is in no log', async () => {
    await createFirstAdministrator(context, output)
    const password = /User name: admin {2}Password: ([A-Za-z0-9]{24})$/.exec(printed[0] ?? '')?.[1] ?? ''
    expect(await passwordIs(context, 'admin', password)).toBe(true)
    expect(await findUserByName(context.db, 'admin')).toMatchObject({
      user: { memberships: [{ accountName: 'default', roles: ['administrator'] }] },
    })
    printed.splice(0)
    await createFirstAdministrator(context, output)
    expect(printed).toEqual([])
    expect(await context.db.selectFrom('audit').selectAll().execute()).toMatchObject([
      { actor_kind: 'host', action: 'user.create', subject: 'admin', outcome: 'done' },
    ])
  })

  it('is made as the settings say, and nothing is printed', async () => {
    const settings = { KEYMESH_ADMIN_USERNAME: 'root', KEYMESH_ADMIN_PASSWORD: 'as the settings say' }
    const configured = await contextWith({ ...settings, KEYMESH_ACCOUNT: 'acme' })
    await createFirstAdministrator(configured, output)
    expect(printed).toEqual([])
    expect(await passwordIs(configured, 'root', 'as the settings say')).toBe(true)
    expect((await findUserByName(context.db, 'root'))?.user.memberships).toMatchObject([{ accountName: 'acme' }])
  })

  it('is one, also when replicas start at once', async () => {
    await Promise.all([1, 2, 3, 4].map(() => createFirstAdministrator(context, output)))
    const users = await context.db.selectFrom('users').select('name').execute()
    expect(users).toEqual([{ name: 'admin' }])
    expect(printed.filter((line) => line.includes('Password:'))).toHaveLength(1)
  })
})

describe('keymesh users', () => {
  it('adds, lists, changes and removes', async () => {
    const added = JSON.parse(await run(context, 'add', 'ada', '--roles', 'administrator', '--json')) as {
      readonly password: string
    }
    expect(await passwordIs(context, 'ada', added.password)).toBe(true)
    const roles = 'service-management-editor,event-portal-manager'
    const bea = await run(context, 'add', 'bea', '--roles', roles, '--password-env', 'PASSWORD_OF_BEA')
    expect(bea).toBe('User bea was created.\n')
    expect(await passwordIs(context, 'bea', 'the password of bea')).toBe(true)
    expect((await run(context, 'list')).split('\n').map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['user', 'roles', 'may get tokens'],
      ['ada', 'administrator', 'yes'],
      ['bea', 'service-management-editor, event-portal-manager', 'yes'],
      [''],
    ])
    await run(context, 'set-roles', 'bea', '--roles', 'event-portal-manager')
    expect(JSON.parse((await run(context, 'list', '--json')).split('\n')[1] ?? '')).toMatchObject({
      name: 'bea',
      roles: ['event-portal-manager'],
    })
    expect(await run(context, 'remove', 'bea')).toBe('User bea belongs to the account no more.\n')
    expect(await findUserByName(context.db, 'bea')).toBeNull()
    const audit = await context.db
      .selectFrom('audit')
      .select(['actor_kind', 'action', 'subject'])
      .orderBy('id')
      .execute()
    expect(audit.map((row) => `${row.actor_kind} ${row.action} ${row.subject}`)).toEqual([
      'host user.create ada',
      'host user.create bea',
      'host user.setRoles bea',
      'host user.remove bea',
    ])
  })

  it('recovers an administrator who lost the password, and ends what was signed in', async () => {
    await run(context, 'add', 'ada', '--roles', 'administrator')
    const before = await findUserByName(context.db, 'ada')
    const printed = await run(context, 'set-password', 'ada')
    const password = /^Password, shown only now: (\S+)$/m.exec(printed)?.[1] ?? ''
    expect(await passwordIs(context, 'ada', password)).toBe(true)
    const after = await findUserByName(context.db, 'ada')
    expect(after?.user.tokenGeneration).toBe((before?.user.tokenGeneration ?? 0) + 1)
  })

  it('makes a user of another account a member, who keeps the password', async () => {
    const north = await contextWith({ KEYMESH_ACCOUNT: 'north' })
    await run(context, 'add', 'bea', '--roles', 'administrator', '--password-env', 'PASSWORD_OF_BEA')
    const added = await run(north, 'add', 'bea', '--roles', 'administrator')
    expect(added).toBe('User bea belongs to the account now.\n')
    expect(await passwordIs(context, 'bea', 'the password of bea')).toBe(true)
    await expect(run(north, 'add', 'bea', '--roles', 'administrator')).rejects.toMatchObject({ code: 'CONFLICT' })
    expect((await findUserByName(context.db, 'bea'))?.user.memberships).toHaveLength(2)
  })

  it.each<readonly [sentence: string, argv: readonly string[], error: object]>([
    ['the last administrator', ['remove', 'ada'], { code: 'CONFLICT' }],
    [
      'the roles of the last administrator',
      ['set-roles', 'ada', '--roles', 'event-portal-manager'],
      { code: 'CONFLICT' },
    ],
    ['an unknown user', ['set-password', 'nobody'], { code: 'NOT_FOUND' }],
    ['a name with a space', ['add', 'a b', '--roles', 'administrator'], { code: 'INVALID_INPUT' }],
    ['an unknown role', ['add', 'cleo', '--roles', 'root'], { code: 'commander.invalidArgument' }],
    ['a short password', ['set-password', 'ada', '--password-env', 'SHORT'], { code: 'INVALID_INPUT' }],
    ['a password that is not set', ['set-password', 'ada', '--password-env', 'UNSET'], { code: 'INVALID_INPUT' }],
  ])('refuses %s', async (_sentence, argv, error) => {
    await run(context, 'add', 'ada', '--roles', 'administrator', '--password-env', 'PASSWORD_OF_BEA')
    await expect(run(context, ...argv)).rejects.toMatchObject(error)
    expect(await run(context, 'list', '--json')).toMatch(/^\{"name":"ada","roles":\["administrator"\],[^\n]*\n$/)
    expect(await passwordIs(context, 'ada', 'the password of bea')).toBe(true)
  })
})

describe('user tokens', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'keymesh-tokens-'))
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('follow a key ring that is rotated while the service runs', async () => {
    const keyRingFile = join(directory, 'keys.json')
    const keyRing = newKeyRing()
    await writeKeyRingFile(keyRingFile, keyRing)
    const tokens = createUserTokens({ ring: followKeyRing(keyRingFile, keyRing), now: Date.now })
    const claims = { userId: 'ada', accountId: null, generation: 1 }
    const old = await tokens.issue(claims, 60_000)
    const { kid } = await rotateKeys({ db: context.db, sealer: context.sealer, keyRing, keyRingFile }, {})
    const fresh = await tokens.issue(claims, 60_000)
    expect(JSON.parse(Buffer.from(fresh.split('.')[0] ?? '', 'base64url').toString())).toMatchObject({ kid })
    expect(await tokens.verify(old)).toEqual(claims)
    expect(await tokens.verify(fresh)).toEqual(claims)
  })
})
