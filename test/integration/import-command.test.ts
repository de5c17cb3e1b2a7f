import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { explainCommand } from '../../src/cli/explain.ts'
import { importCommand } from '../../src/cli/import.ts'
import { keysCommand } from '../../src/cli/keys.ts'
import { createOutput } from '../../src/cli/output.ts'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { InvalidInputError } from '../../src/domain/errors.ts'
import { withDatabase } from '../helpers/database.ts'

const database = withDatabase()
let context: Context
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-import-'))
  context = await openContext(
    toConfig({
      env: {
        DATABASE_URL: database().connectionString,
        KEYMESH_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64url')}`,
        KEYMESH_LOG_LEVEL: 'silent',
        BROKER_PASSWORD: 'password-from-environment',
      },
      pid: 1,
      hostname: 'test',
    }),
  )
  await writeFile(join(directory, 'orders.yaml'), ORDERS)
})
afterAll(async () => {
  await context[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const ORDERS = `
asyncapi: 2.6.0
info: { title: Orders, version: 1.0.0 }
channels:
  orders/{region}:
    parameters: { region: { schema: { type: string } } }
    subscribe: { message: { payload: { type: object } } }
`

const PORTAL = `
environments: [{ id: prod }]
eventMeshes: [{ id: mesh, environment: prod }]
brokers:
  - id: broker1
    eventMesh: mesh
    management: { url: "https://one.example:943", msgVpn: default, username: admin, passwordEnv: BROKER_PASSWORD }
    messaging: { host: one.example, protocols: { smfs: 55443 } }
eventApis: [{ id: ordersApi, version: 1.0.0, document: orders.yaml }]
products:
  - id: orders
    shared: true
    versions:
      - version: 1.0.0
        state: RELEASED
        public: true
        approvalType: automatic
        eventApis: [ordersApi]
        brokers: [broker1]
        plans: [{ id: gold, name: Gold, messageDeliveryMode: direct }]
`
const REGISTRATIONS = `
registrations:
  - id: shop
    accessRequests: [{ id: request-1, product: orders, plan: gold }]
    credentials: [{ name: main }]
`

async function run(...argv: string[]): Promise<{ out: string; status: number }> {
  let out = ''
  let status = 0
  const streams = { out: { write: (text: string) => (out += text) }, err: { write: () => undefined } }
  const dependencies: CommandDependencies = {
    withContext: (work) => work(context),
    output: (command) => createOutput(streams, { json: command.opts<{ json?: boolean }>().json === true }),
    exitWith: (next) => {
      status = Math.max(status, next)
    },
    signal: new AbortController().signal,
  }
  const [name, ...rest] = argv
  const command = [importCommand, explainCommand, keysCommand]
    .map((make) => make(dependencies))
    .find((each) => each.name() === name)
  await command?.exitOverride().parseAsync(rest, { from: 'user' })
  return { out, status }
}

describe('the import command', () => {
  it('prints what it would do, does it, and has nothing to do then', async () => {
    const path = join(directory, 'portal.yaml')
    await writeFile(path, PORTAL + REGISTRATIONS)
    const dry = await run('import', path, '--dry-run')
    expect(dry.out).toContain('+ access request shop/request-1\n')
    expect(dry.out).toContain('Nothing was written.')
    expect((await run('import', path)).out).toContain('9 created, 0 updated, 0 removed. 1 registration to reconcile.')
    expect((await run('import', path)).out).toBe('Nothing to do: the store holds what the file says.\n')
    const { out } = await run('import', path, '--json')
    expect(JSON.parse(out)).toEqual({ file: path, dryRun: false, changes: [], warnings: [], raised: [] })
  })

  it('says in which line a problem stands that only the store knows', async () => {
    const path = join(directory, 'second-broker.yaml')
    const second = PORTAL.replaceAll('broker1', 'broker2').replace('id: orders\n', 'id: orders2\n')
    await writeFile(path, second.replace('ordersApi', 'ordersApi2').replace('[ordersApi]', '[ordersApi2]'))
    const line = second.split('\n').findIndex((text) => text.includes('msgVpn')) + 1
    await expect(run('import', path)).rejects.toMatchObject({
      problems: [{ file: path, path: 'brokers[0].management', line }],
    })
  })

  it('stops a prune of all registrations until the number is agreed to', async () => {
    const path = join(directory, 'without-registrations.yaml')
    await writeFile(path, PORTAL)
    await expect(run('import', path, '--prune')).rejects.toMatchObject({ code: 'MASS_DELETE_GUARD' })
    expect((await run('import', path, '--prune', '--yes-prune', '1')).out).toBe(
      '- registration shop\n0 created, 0 updated, 1 removed. 1 registration to reconcile.\n',
    )
    await expect(run('import', path, '--yes-prune', '1')).rejects.toBeInstanceOf(InvalidInputError)
  })
})

describe('the explain command', () => {
  it('prints each rule', async () => {
    const { out } = await run('explain', 'product', 'orders')
    expect(out).toMatch(/^orders \(orders\) 1\.0\.0: visible\n {2}ok {3}shared: /)
    expect(out).toContain('broker broker1: usable\n')
    expect(JSON.parse((await run('explain', 'broker', 'broker1', '--json')).out)).toMatchObject({ usable: true })
  })

  it('knows no product that is not there', async () => {
    await expect(run('explain', 'product', 'nothing')).rejects.toBeInstanceOf(InvalidInputError)
  })
})

describe('the keys command', () => {
  it('reseals with the key of the environment, and cannot change that ring', async () => {
    expect((await run('keys', 'rotate', '--json')).out).toContain('"resealed":0')
    expect((await run('keys', 'list')).out).toMatch(/k1\s+current\s+2/)
    await expect(run('keys', 'remove', 'k1')).rejects.toMatchObject({ code: 'KEY_RING_CHANGE_REFUSED' })
  })
})
