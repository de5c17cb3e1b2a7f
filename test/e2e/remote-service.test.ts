import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { formatKeyRing, newKeyRing } from '../../src/secrets/key-ring.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database.ts'
import { emptyPortalFile, portalBroker } from '../helpers/mesh.ts'
import { dumpDatabase, findSecrets } from '../helpers/secret-scan.ts'
import { Service, until } from '../helpers/service.ts'
import { broker } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf } from '../integration/reconcile-fixtures.ts'
import { ordersRemote } from '../integration/remote-fixtures.ts'

const PASSWORD = 'the password of the administrator'

interface Side {
  readonly database: TestDatabase
  readonly env: Readonly<Record<string, string>>
}

let sandbox: Sandbox
let directory: string
let remote: Side
let follower: Side
let service: Service
let url: string

async function side(): Promise<Side> {
  const database = await createTestDatabase()
  const keys = formatKeyRing(newKeyRing()).reveal()
  return { database, env: { DATABASE_URL: database.connectionString, KEYMESH_KEYS: keys } }
}

async function withContext<Result>({ env }: Side, work: (context: Context) => Promise<Result>): Promise<Result> {
  const config = toConfig({ env: { ...env, KEYMESH_LOG_LEVEL: 'silent' }, pid: process.pid, hostname: 'command' })
  const context = await openContext(config)
  try {
    return await work(context)
  } finally {
    await context[Symbol.asyncDispose]()
  }
}

const importInto = (to: Side, file: Parameters<typeof importPortalFile>[2]) =>
  withContext(to, ({ db, sealer, accountId }) =>
    importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, file),
  )

async function call<Body>(
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  token: string | null,
  body?: object,
): Promise<Body> {
  const answer = await request(`${url}${path}`, {
    method,
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
  return (text === '' ? null : JSON.parse(text)) as Body
}

/** As `docs/remote-catalogue.md` has it: one service serves the API, another one has the brokers and follows. */
beforeAll(async () => {
  sandbox = await startSandbox({ brokers: 2 })
  directory = await mkdtemp(join(tmpdir(), 'keymesh-remote-'))
  remote = await side()
  follower = await side()
  const known = ['broker-1', 'broker-2'].map((id) => broker(id))
  await importInto(remote, {
    ...emptyPortalFile(known),
    ...(await ordersRemote(known, [client('first'), client('second')])),
  })
  await importInto(follower, { ...emptyPortalFile(sandbox.brokers.map(portalBroker)), applicationDomains: [] })
  const env = { ...remote.env, KEYMESH_ROLES: 'api', KEYMESH_HOST: '127.0.0.1', KEYMESH_ADMIN_PASSWORD: PASSWORD }
  service = await Service.start({ dataDirectory: join(directory, 'remote'), env })
  url = String((await service.logged('api.listening')).url)
}, 120_000)
afterAll(async () => {
  await service?.stop()
  await sandbox?.close()
  await remote?.database.drop()
  await follower?.database.drop()
  await rm(directory, { recursive: true, force: true })
})

const loginsOf = (key: string, secret: string): readonly string[] =>
  sandbox.brokers.map(({ state }) => state.checkLogin(key, secret))
const atWork = (key: string, secret: string) =>
  until(`${key} is on every broker`, () => (loginsOf(key, secret).every((each) => each === 'accepted') ? true : null))
const gone = (key: string, secret: string) =>
  until(`${key} is on no broker`, () => (loginsOf(key, secret).includes('accepted') ? null : true))

describe('a worker that follows another service', { timeout: 180_000 }, () => {
  it('keeps its brokers in step with what is created, changed and deleted there', async () => {
    await using worker = await Service.start({
      dataDirectory: join(directory, 'follower'),
      env: {
        ...follower.env,
        KEYMESH_ROLES: 'worker,scheduler',
        KEYMESH_APIM_URL: url,
        KEYMESH_APIM_POLL_CRON: '* * * * * *',
        KEYMESH_POLL_CRON: '* * * * * *',
        KEYMESH_LOGINS: 'false',
        KEYMESH_AUTH_URL: url,
        KEYMESH_AUTH_USERNAME: 'admin',
        KEYMESH_AUTH_PASSWORD: PASSWORD,
      },
    })
    await atWork(keyOf('first'), givenSecretOf('first'))
    await atWork(keyOf('second'), givenSecretOf('second'))

    const credentials = { username: 'admin', password: PASSWORD }
    const signedIn = await call<{ token: string }>('POST', '/api/v1/iam/tokens', null, credentials)
    const { data } = await call<{ data: { token: string } }>('POST', '/api/v0/user/apiTokens', signedIn.token, {
      name: 'portal',
      permissions: [
        'apim_event_api_product:*:*',
        'mission_control:access',
        'services:get',
        'service_requests:post:client_profile',
      ],
    })
    const portal = <Body>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
      call<Body>(method, `/api/v2/apim/appRegistrations${path}`, data.token, body)
    await portal('POST', '', { registrationId: 'third', source: 'portal', name: 'Third' })
    const made = await portal<Made>('POST', '/third/credentials', { name: 'main' })
    await portal('POST', '/third/accessRequests', {
      accessRequestId: 'third-1',
      eventApiProductId: 'orders',
      planId: 'gold',
    })
    const { consumerKey, consumerSecret } = made.data.secret
    await atWork(consumerKey, consumerSecret)

    const rotated = { consumerKey, consumerSecret: 'the-next-secret-of-the-third' }
    await portal('PATCH', `/third/credentials/${consumerKey}`, { secret: rotated })
    await atWork(consumerKey, rotated.consumerSecret)
    await portal('DELETE', '/second')
    await gone(keyOf('second'), givenSecretOf('second'))
    expect(loginsOf(keyOf('first'), givenSecretOf('first'))).toEqual(['accepted', 'accepted'])

    expect(await worker.stop()).toBe(0)
    const secrets = new Map([
      ['the first secret of the third', consumerSecret],
      ['the next secret of the third', rotated.consumerSecret],
      ['the secret of the first', givenSecretOf('first')],
      ['the password of the administrator', PASSWORD],
    ])
    const dump = await withContext(follower, ({ db }) => dumpDatabase(db))
    expect(findSecrets(secrets, new Map([...dump, ['the log', worker.printed]]))).toEqual([])
    expect(worker.printed).toContain('"event":"remote.followed"')
    expect(worker.log.filter(({ level }) => Number(level) >= 40)).toEqual([])
    // It gave its API token back.
    const tokens = await withContext(remote, ({ db }) => db.selectFrom('api_tokens').select('name').execute())
    expect(tokens).toEqual([{ name: 'portal' }])
  })
})

interface Made {
  readonly data: { readonly secret: { readonly consumerKey: string; readonly consumerSecret: string } }
}
