import { Command } from 'commander'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { notificationsCommand } from '../../src/cli/notifications.ts'
import { createOutput } from '../../src/cli/output.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { isSignedBy, type NotificationReceiver, startReceiver } from '../helpers/notification-receiver.ts'

let mesh: TestMesh
let receiver: NotificationReceiver
let env: Record<string, string>
beforeAll(async () => {
  receiver = await startReceiver()
  env = {
    KEYMESH_NOTIFICATION_HTTP: 'true',
    KEYMESH_NOTIFICATION_NETWORKS: 'loopback',
    CHAT_HOOK: `${receiver.url}?token=hidden-token`,
  }
  mesh = await withMesh({ env })
})
afterAll(async () => {
  await mesh?.[Symbol.asyncDispose]()
  await receiver?.[Symbol.asyncDispose]()
})

async function run(...argv: string[]): Promise<{ readonly status: number; readonly out: string }> {
  let out = ''
  let status = 0
  const streams = { out: { write: (text: string) => (out += text) }, err: { write: () => undefined } }
  const dependencies: CommandDependencies = {
    withContext: (work) => work(mesh.context),
    output: (command) => createOutput(streams, { json: command.opts<{ json?: boolean }>().json === true }),
    exitWith: (next) => {
      status = next
    },
    signal: new AbortController().signal,
  }
  const program = new Command('keymesh').exitOverride().configureOutput({ writeErr: () => undefined })
  const notifications = notificationsCommand(dependencies)
  for (const command of [notifications, ...notifications.commands]) command.copyInheritedSettings(program)
  await program.addCommand(notifications).parseAsync(['notifications', ...argv], { from: 'user' })
  return { status, out }
}

describe('keymesh notifications', () => {
  it('adds, tests, changes, rotates and removes an endpoint, showing no secret but the one it made', async () => {
    const added = await run('add', 'chat', '--to-env', 'CHAT_HOOK', '--kinds', 'broker.back,broker.down')
    const [secret = ''] = /whsec_\S+/.exec(added.out) ?? []
    expect(added.out).not.toContain('hidden-token')
    expect((await run('list')).out).toContain(`${receiver.url}?…  broker.down, broker.back  on `)
    expect(await run('test', 'chat')).toEqual({ status: 0, out: 'The receiver took it: HTTP 204.\n' })
    const [post] = receiver.posts.splice(0)
    expect(post !== undefined && isSignedBy(secret, post)).toBe(true)
    expect(post?.path).toContain('hidden-token')
    const rotated = await run('rotate-secret', 'chat', '--at-once')
    await run('test', 'chat')
    const [second] = receiver.posts.splice(0)
    expect(second !== undefined && isSignedBy(/whsec_\S+/.exec(rotated.out)?.[0] ?? '', second)).toBe(true)
    expect(second !== undefined && isSignedBy(secret, second)).toBe(false)
    await run('change', 'chat', '--name', 'talk', '--off', '--kinds', 'all')
    expect((await run('list')).out).toMatch(/^talk .* all +off /m)
    await expect(run('test', 'talk')).rejects.toMatchObject({ code: 'CONFLICT' })
    await run('remove', 'talk')
    expect((await run('list')).out).toContain('Nobody is notified')
    const { rows } = await sql<{ action: string }>`select action from audit order by id`.execute(mesh.context.db)
    expect(rows.map(({ action }) => action.replace('notificationEndpoint.', ''))).toEqual([
      'create',
      'test',
      'rotateSecret',
      'test',
      'change',
      'delete',
    ])
  })

  it('says what a receiver answered, shows dead letters and sends them again', async () => {
    await run('add', 'pager', '--to', receiver.url)
    receiver.answers.push(500)
    expect(await run('test', 'pager')).toEqual({ status: 1, out: 'Not delivered: The receiver answered HTTP 500.\n' })
    expect((await run('deliveries', '--state', 'dead', '--endpoint', 'pager')).out).toMatch(
      /test +dead +1 +The receiver/,
    )
    await sql`update notification_deliveries set test = false`.execute(mesh.context.db)
    expect((await run('resend', '--dead', 'pager')).out).toContain('To be sent again: 1.')
    const [pending] = (await run('deliveries', '--json')).out.trim().split('\n')
    const { id, state } = JSON.parse(pending ?? '') as { id: string; state: string }
    expect(state).toBe('pending')
    expect((await run('resend', id, '--json')).out).toBe('{"count":1}\n')
    await run('remove', 'pager')
    expect((await run('deliveries')).out).toBe('There are no such deliveries.\n')
  })

  const wrong: Readonly<Record<string, readonly [argv: readonly string[], said: string]>> = {
    'an address that is not allowed': [['add', 'x', '--to', 'https://10.0.0.1'], 'private or reserved address'],
    'no address': [['add', 'x'], '--to: must be given'],
    'an unset variable': [['add', 'x', '--to-env', 'NOT_SET'], 'NOT_SET is not set'],
    'two addresses': [['add', 'x', '--to', 'https://a.example', '--to-env', 'CHAT_HOOK'], 'give one of them'],
    'a kind that is not told': [['add', 'x', '--to', 'https://a.example', '--kinds', 'nothing'], 'broker.down'],
    'an unknown endpoint': [['remove', 'nobody'], 'There is no notification endpoint "nobody"'],
    'on and off at once': [['change', 'x', '--on', '--off'], 'give one of them'],
    'nothing to send again': [['resend'], 'give the id of a delivery, or --dead'],
  }
  it.each(Object.entries(wrong))('refuses %s', async (_sentence, [argv, said]) => {
    await expect(run(...argv)).rejects.toThrow(said)
  })
})
