import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { createOutput } from '../../src/cli/output.ts'
import { pullCommand } from '../../src/cli/pull.ts'
import { statusCommand } from '../../src/cli/status.ts'
import { refusing } from '../helpers/http-front.ts'
import { client, givenSecretOf } from './reconcile-fixtures.ts'
import { type FollowedRemote, ordersRemote, withFollowedRemote } from './remote-fixtures.ts'

let followed: FollowedRemote

beforeAll(async () => {
  followed = await withFollowedRemote({
    portal: (brokers) => ordersRemote(brokers, [client('first'), client('second')]),
  })
})
afterAll(() => followed[Symbol.asyncDispose]())

async function run(name: 'pull' | 'status', ...options: readonly string[]) {
  let out = ''
  let status = 0
  const write = (text: string) => {
    out += text
  }
  const dependencies: CommandDependencies = {
    withContext: (work) => work(followed.mesh.context),
    output: (command) =>
      createOutput({ out: { write }, err: { write } }, { json: command.opts<{ json?: boolean }>().json === true }),
    exitWith: (next) => {
      status = Math.max(status, next)
    },
    signal: new AbortController().signal,
  }
  const command = name === 'pull' ? pullCommand(dependencies) : statusCommand(dependencies)
  await command.exitOverride().parseAsync([...options], { from: 'user' })
  expect(out).not.toContain(givenSecretOf('first'))
  return { out, status }
}

describe('the pull command', () => {
  it('prints what it would do, does it, and has nothing to do then', async () => {
    const dry = await run('pull', '--dry-run')
    expect(dry.out).toContain('+ access request first/request-1\n')
    expect(dry.out).toContain('10 to create, 0 to update, 0 to remove. Nothing was written.')
    expect((await run('status')).out).not.toContain('catalogue of')
    expect((await run('pull')).out).toContain('10 created, 0 updated, 0 removed. 2 registrations to reconcile.')
    expect((await run('pull')).out).toBe('Nothing to do: the store holds what the other service has.\n')
    expect(JSON.parse((await run('pull', '--json')).out)).toEqual({
      dryRun: false,
      changes: [],
      warnings: [],
      unmanagedBrokers: [],
      raised: [],
      superseded: false,
    })
    await followed.mesh.sweepAll()
  })

  it('reads documents again when it is told to', async () => {
    const before = followed.front.requests.length
    await run('pull')
    const withoutDocuments = followed.front.requests.length - before
    await run('pull', '--documents')
    expect(followed.front.requests.length - before - withoutDocuments).toBe(withoutDocuments + 1)
  })

  it('says what it cannot use, and which brokers nobody manages', async () => {
    const [broker] = followed.portal.brokers
    const [orders] = followed.portal.products
    const [version] = orders?.versions ?? []
    if (broker === undefined || orders === undefined || version === undefined) throw new Error('the remote is empty')
    const other = {
      ...broker,
      id: 'other1' as typeof broker.id,
      name: 'Other',
      management: broker.management && { ...broker.management, url: 'https://other.example:943' },
    }
    await followed.change({
      brokers: [broker, other],
      products: [{ ...orders, versions: [{ ...version, brokers: [broker.id, other.id] }] }],
      // The brokers of a portal file know no such topics; the API of the remote shows them.
      eventApis: followed.portal.eventApis.map((each) => ({
        ...each,
        document: { ...each.document, json: { asyncapi: '2.6.0', info: { title: 'x' } } },
      })),
    })
    const { out } = await run('pull', '--documents')
    expect(out).toContain('broker other1 (Other) is not managed here')
    expect(out).toMatch(/warning: The document of Event API orders-api 1\.0\.0 cannot be used/)
    const status = await run('status')
    expect(status.out).toMatch(/The account follows the catalogue of http:\S+, last read 0 s ago\.\n/)
    expect(status.out).toContain('  broker other1 (Other) is not managed here')
    expect(status.out).toContain('  The document of Event API orders-api 1.0.0 cannot be used')
  })

  it('fails when the other service does, which the status shows', async () => {
    followed.front.failWith(refusing('/appRegistrations', 403))
    await expect(run('pull')).rejects.toMatchObject({ code: 'REMOTE_FORBIDDEN' })
    const { out, status } = await run('status')
    expect(out).toContain('does not allow this (status 403)')
    expect(status).toBe(1)
    const documents = (await run('status', '--json')).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(documents.at(-1)).toMatchObject({ remoteCatalogue: { origin: followed.url, errorCode: 'REMOTE_FORBIDDEN' } })
    followed.front.failWith(null)
  })

  it('makes the account its own again', async () => {
    await expect(run('pull', '--unfollow', '--dry-run')).rejects.toMatchObject({ code: 'INVALID_INPUT' })
    expect((await run('pull', '--unfollow')).out).toBe('The account is its own again.\n')
    expect(JSON.parse((await run('pull', '--unfollow', '--json')).out)).toEqual({ unfollowed: false })
    expect((await run('status')).out).not.toContain('catalogue of')
  })
})
