import { Writable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { credentialPlace } from '../../src/store/sealer-port.ts'
import { type TestApi, withApi } from '../helpers/http.ts'
import { type Client, clientOf, Described } from './http-registrations-fixture.ts'

const lines: string[] = []
const log = pino(
  { level: 'trace' },
  new Writable({
    write: (line: Buffer, _encoding, done) => {
      lines.push(line.toString())
      done()
    },
  }),
)

let api: TestApi
let call: Client
const described = new Described()
beforeAll(async () => {
  api = await withApi({ log })
  call = clientOf(api, described)
  await call('POST', '', { registrationId: 'app-1', source: 'devportal', name: 'App' })
})
afterAll(() => api[Symbol.asyncDispose]())

interface Credential {
  readonly name: string
  readonly secret: { readonly consumerKey: string; readonly consumerSecret: string }
  readonly issuedAt: number
  readonly expiresAt: number
}

async function create(body: object, registration = 'app-1'): Promise<Credential> {
  const answer = await call('POST', `/${registration}/credentials`, body)
  expect(answer.status).toBe(200)
  return answer.body.data as unknown as Credential
}

const rowOf = async (key: string) =>
  await api.db
    .selectFrom('credentials')
    .selectAll()
    .where('consumer_key', '=', key)
    .orderBy('issued_at', 'desc')
    .executeTakeFirstOrThrow()

const generation = async (): Promise<number> =>
  (await api.db.selectFrom('registrations').select('generation').where('id', '=', 'app-1').executeTakeFirstOrThrow())
    .generation

describe('credentials', () => {
  it('come in the three forms of the specification', async () => {
    const before = await generation()
    const generated = await create({ name: 'generated' })
    expect(generated).toMatchObject({ name: 'generated', expiresAt: -1 })
    expect(generated.secret.consumerKey).toMatch(/^[A-Za-z0-9]{24}$/)
    expect(generated.secret.consumerSecret).toMatch(/^[A-Za-z0-9]{40}$/)
    const withKey = await create({ name: 'with-key', secret: { consumerKey: 'my-own-key' } })
    expect(withKey.secret).toEqual({
      consumerKey: 'my-own-key',
      consumerSecret: expect.stringMatching(/^[A-Za-z0-9]{40}$/),
    })
    const supplied = await create({
      name: 'supplied',
      secret: { consumerKey: 'my-other-key', consumerSecret: 'my_own-secret' },
    })
    expect(supplied.secret).toEqual({ consumerKey: 'my-other-key', consumerSecret: 'my_own-secret' })
    expect(await generation()).toBe(before + 3)
    const listed = await call('GET', '/app-1/credentials')
    expect(listed.body.data).toEqual([generated, withKey, supplied])
    expect(listed.headers['cache-control']).toBe('no-store')
    expect((await call('GET', '/app-1')).body.data.credentials).toEqual([generated, withKey, supplied])
    expect((await call('GET', '/app-1/credentials/my-own-key')).body.data).toEqual(withKey)
  })

  it('are sealed where they are stored', async () => {
    const { secret } = await create({
      name: 'sealed',
      secret: { consumerKey: 'sealed-key', consumerSecret: 'plain-to-see' },
    })
    const row = await rowOf(secret.consumerKey)
    expect(JSON.stringify(row)).not.toContain('plain-to-see')
    const opened = await api.dependencies.sealer.open(row.secret, credentialPlace('default', row.id, 1))
    expect(opened.reveal()).toBe('plain-to-see')
  })

  it('have a name, unless gateways need not give one', async () => {
    const refused = await call('POST', '/app-1/credentials', { secret: { consumerKey: 'nameless-key' } })
    expect(refused).toMatchObject({ status: 400, body: { validationDetails: { name: ['is required'] } } })
    await using lenient = await withApi({ env: { KEYMESH_CREDENTIAL_NAME_OPTIONAL: 'true' } })
    const gateway = clientOf(lenient, described)
    await gateway('POST', '', { registrationId: 'app-1', source: 'gateway', name: 'App' })
    const named = await gateway('POST', '/app-1/credentials', {
      secret: { consumerKey: 'nameless-key', consumerSecret: 'some-secret' },
    })
    expect(named).toMatchObject({ status: 200, body: { data: { name: 'nameless-key' } } })
    const { data } = (await gateway('POST', '/app-1/credentials', {})).body
    expect(data.name).toBe((data as unknown as Credential).secret.consumerKey)
  })

  it('get a new version with a new secret, sealed before anybody is told', async () => {
    const first = await create({ name: 'rotating', secret: { consumerKey: 'rotating-key' } })
    const before = await generation()
    const same = await call('PATCH', '/app-1/credentials/rotating-key', { secret: first.secret })
    expect(same.body.data).toEqual(first)
    expect(await generation()).toBe(before)
    const secret = { consumerKey: 'rotating-key', consumerSecret: 'the-second-secret' }
    const changed = await call('PATCH', '/app-1/credentials/rotating-key', { secret })
    expect(changed).toMatchObject({ status: 200, body: { data: { name: 'rotating', secret } } })
    expect((await rowOf('rotating-key')).secret_version).toBe(2)
    expect(await generation()).toBe(before + 1)
    const renamed = await call('PATCH', '/app-1/credentials/rotating-key', { name: 'renamed' })
    expect(renamed.body.data).toMatchObject({ name: 'renamed', secret })
    expect(await generation()).toBe(before + 1)
  })

  it('expire when they are told to, and are extended', async () => {
    const expiresAt = api.dependencies.now() + 60_000
    expect(await create({ name: 'short', expiresAt, secret: { consumerKey: 'short-lived' } })).toMatchObject({
      expiresAt,
    })
    expect((await rowOf('short-lived')).expires_at?.getTime()).toBe(expiresAt)
    expect((await call('PATCH', '/app-1/credentials/short-lived', { expiresAt: -1 })).body.data).toMatchObject({
      expiresAt: -1,
    })
    // Written with five digits of a year.
    const late = Date.UTC(12_345, 0)
    const extended = await call('PATCH', '/app-1/credentials/short-lived', { expiresAt: late })
    expect(extended).toMatchObject({ status: 200, body: { data: { expiresAt: late } } })
    const refused = await call('PATCH', '/app-1/credentials/short-lived', { expiresAt: 1000 })
    expect(refused).toMatchObject({ status: 400, body: { validationDetails: { expiresAt: [expect.any(String)] } } })
  })

  it('end at once when they are deleted, and their keys count on', async () => {
    await create({ name: 'leaked', secret: { consumerKey: 'leaked-key' } })
    const before = await generation()
    api.enqueued.length = 0
    expect((await call('DELETE', '/app-1/credentials/leaked-key')).status).toBe(204)
    expect((await rowOf('leaked-key')).retired_at).not.toBeNull()
    expect(await generation()).toBe(before + 1)
    // No broker knows it yet.
    expect(api.enqueued).toEqual([])
    for (const method of ['GET', 'DELETE'] as const) {
      expect((await call(method, '/app-1/credentials/leaked-key')).status).toBe(404)
    }
    await create({ name: 'leaked', secret: { consumerKey: 'leaked-key' } })
    expect((await rowOf('leaked-key')).secret_version).toBe(2)
  })

  it('are changed only by who read the newest', async () => {
    await create({ name: 'etag', secret: { consumerKey: 'etag-of-key' } })
    const { headers } = await call('GET', '/app-1/credentials/etag-of-key')
    const old = { headers: { 'if-match': String(headers.etag) } }
    expect((await call('PATCH', '/app-1/credentials/etag-of-key', { name: 'etag-2' }, old)).status).toBe(200)
    expect((await call('PATCH', '/app-1/credentials/etag-of-key', { name: 'etag-3' }, old)).status).toBe(412)
    expect((await call('DELETE', '/app-1/credentials/etag-of-key', undefined, old)).status).toBe(412)
  })

  it('have a key of their own in the account, also when many ask at once', async () => {
    await call('POST', '', { registrationId: 'app-2', source: 'devportal', name: 'App' })
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        call('POST', `/app-${1 + (index % 2)}/credentials`, {
          name: `racer-${index}`,
          secret: { consumerKey: 'wanted-by-all' },
        }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400])
    const twice = await call('POST', '/app-1/credentials', { name: 'generated' })
    expect(twice).toMatchObject({
      status: 400,
      body: { validationDetails: { name: [expect.stringContaining('not unique')] } },
    })
  })

  const wrong: Readonly<Record<string, readonly [body: object, field: string]>> = {
    'with a short key': [{ name: 'bad', secret: { consumerKey: 'short' } }, 'secret.consumerKey'],
    'with a key of other characters': [
      { name: 'bad', secret: { consumerKey: '#client-username' } },
      'secret.consumerKey',
    ],
    'with a short secret': [
      { name: 'bad', secret: { consumerKey: 'good-key', consumerSecret: 'short' } },
      'secret.consumerSecret',
    ],
    'with a secret and no key': [{ name: 'bad', secret: { consumerSecret: 'long-enough' } }, 'secret.consumerKey'],
    'with a time that is over': [{ name: 'bad', expiresAt: 1 }, 'expiresAt'],
    'with a time that no date holds': [{ name: 'bad', expiresAt: Number.MAX_SAFE_INTEGER }, 'expiresAt'],
    'with an unknown field': [
      { name: 'bad', secret: { consumerKey: 'good-key', clientSecret: 'x' } },
      'secret.clientSecret',
    ],
    'with an empty name': [{ name: '' }, 'name'],
  }
  it.each(Object.entries(wrong))('are refused %s', async (_name, [body, field]) => {
    const before = await generation()
    const refused = await call('POST', '/app-1/credentials', body)
    expect(refused).toMatchObject({ status: 400, body: { validationDetails: { [field]: [expect.any(String)] } } })
    expect(JSON.stringify(refused.body)).not.toContain('long-enough')
    expect(await generation()).toBe(before)
  })

  it('keep their key', async () => {
    await create({ name: 'fixed', secret: { consumerKey: 'fixed-key' } })
    const refused = await call('PATCH', '/app-1/credentials/fixed-key', { secret: { consumerKey: 'another-key' } })
    expect(refused.body.validationDetails).toEqual({
      'secret.consumerKey': [expect.stringContaining('cannot be changed')],
    })
  })

  it('belong to a registration that is there', async () => {
    expect((await call('POST', '/nobody/credentials', { name: 'main' })).status).toBe(404)
    expect((await call('GET', '/nobody/credentials')).status).toBe(404)
    expect((await call('GET', '/app-2/credentials/fixed-key')).status).toBe(404)
  })

  it('are paged and sorted', async () => {
    await call('POST', '', { registrationId: 'pages', source: 'devportal', name: 'App' })
    for (const name of ['b', 'c', 'a']) await create({ name }, 'pages')
    const page = await call('GET', '/pages/credentials?pageSize=2&sortFieldName=name&sortDirection=desc')
    expect((page.body.data as unknown as readonly Credential[]).map(({ name }) => name)).toEqual(['c', 'b'])
    expect(page.body.meta).toMatchObject({ pagination: { count: 3, nextPage: 2 } })
  })

  it('leave a line in the trail for each read, and their secret in no line of trail and log', async () => {
    const { secret } = await create({
      name: 'watched',
      secret: { consumerKey: 'watched-key', consumerSecret: 'never-to-be-logged' },
    })
    await call('GET', '/app-1/credentials/watched-key')
    await call('GET', '/app-1')
    await call('GET', '/app-1/credentials')
    await call('POST', '/app-1/credentials', { name: 'watched', secret })
    await call('POST', '/app-1/credentials', { name: 7, secret })
    const trail = await api.db.selectFrom('audit').selectAll().execute()
    const actions = trail.map(({ action }) => action)
    expect(actions).toEqual(
      expect.arrayContaining(['credential.read', 'credential.list', 'registration.read', 'credential.create']),
    )
    expect(JSON.stringify(trail)).not.toContain('never-to-be-logged')
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.join('')).not.toContain('never-to-be-logged')
  })
})
