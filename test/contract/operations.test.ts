import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { runCommandLine } from '../../src/cli/program.ts'
import { type Server, startServer } from '../../src/http/server.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { peopleOf, recordingEnqueuer } from '../helpers/http.ts'
import { HttpFront } from '../helpers/http-front.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

/** A name such as a store that was lost leaves behind. */
const LOST = `keymesh-${'a'.repeat(26)}`

let mesh: TestMesh
let server: Server
let token: string
/** Of somebody who is no administrator. */
let clerkToken: string
/** May look, and change nothing. */
let readToken: string

beforeAll(async () => {
  mesh = await withMesh({
    brokers: [{ name: 'east' }, { name: 'west' }],
    sandbox: { logins: { mqtt: 0, amqp: 0 } },
    portal: (brokers) => ordersPortal(brokers, [client('app-a'), client('app-b')]),
  })
  const { context } = mesh
  const dependencies = { ...context, enqueue: recordingEnqueuer([]), random: cryptoRandom, checkAnswers: false }
  server = await startServer(dependencies, { host: '127.0.0.1', port: 0, patienceMs: 0 })
  const people = peopleOf(dependencies)
  const user = await people.addUser({ name: 'operator' })
  token = user.apiToken
  clerkToken = (await people.addUser({ name: 'clerk', roles: ['service-management-editor'] })).apiToken
  const { id } = await people.addUser({ name: 'reader' })
  readToken = await people.apiToken(id, context.accountId, [
    'apim_event_api_product:*:*',
    'mission_control:access',
    'services:get',
  ])
  await mesh.sweepAll()
  // Some drift to have on record.
  await vandalise()
  await mesh.sweep()
})
afterAll(async () => {
  await server?.close()
  await mesh?.[Symbol.asyncDispose]()
})
afterEach(() => vi.unstubAllEnvs())

interface Result {
  readonly status: number
  readonly out: string
  readonly err: string
}

async function keymesh(env: Readonly<Record<string, string>>, words: readonly string[]): Promise<Result> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  const written = { out: '', err: '' }
  const stream = (name: 'out' | 'err') => ({
    write: (text: string) => {
      written[name] += text
    },
  })
  const status = await runCommandLine(['node', 'keymesh', ...words], { out: stream('out'), err: stream('err') })
  vi.unstubAllEnvs()
  return { status, out: withoutTime(written.out), err: written.err }
}

const onStore = (...words: readonly string[]) => keymesh(mesh.env, words)
const onService = (...words: readonly string[]) => keymesh({ KEYMESH_URL: server.url, KEYMESH_TOKEN: token }, words)

const withoutTime = (text: string): string =>
  text.replace(/\d+ (s|min|h) ago/g, '… ago').replace(/"(\w+Ms)":\d+/g, '"$1":0')

/** As the lines came from brokers that work side by side. */
const sorted = ({ out, ...rest }: Result) => ({ ...rest, out: out.split('\n').sort() })

const vandalise = async (): Promise<void> => {
  mesh.broker().state.clientUsernames.change(keyOf('app-a'), { enabled: false })
}
const leaveOrphan = async (): Promise<void> => {
  mesh.broker().state.queues.put(LOST)
}
const nothing = async (): Promise<void> => undefined

interface Case {
  readonly words: string
  /** Done before each of the two ways. */
  readonly prepare?: () => Promise<void>
  readonly status: number
  readonly says: RegExp
}

const CASES: readonly Case[] = [
  { words: 'status', status: 0, says: /east .* yes, SEMP/ },
  { words: 'status --broker west', status: 0, says: /west/ },
  { words: 'status --broker nowhere', status: 0, says: /No brokers yet/ },
  { words: 'plan', status: 0, says: /Nothing to do/ },
  { words: 'plan', prepare: vandalise, status: 1, says: /registration app-a on broker east/ },
  { words: 'plan --registration app-a --broker east', prepare: vandalise, status: 1, says: /1 registration with/ },
  { words: 'plan --broker nowhere', status: 2, says: /--broker: there is no broker nowhere .* known: east, west/ },
  { words: 'plan --registration nobody', status: 2, says: /--registration: registration nobody is unknown/ },
  { words: 'reconcile', prepare: vandalise, status: 0, says: /east: .* 1 changed/ },
  { words: 'reconcile --registration app-a', prepare: vandalise, status: 0, says: /on broker east: 1 writes/ },
  { words: 'reconcile --broker nowhere', status: 2, says: /there is no broker nowhere/ },
  { words: 'reapply --registration app-b --broker west', status: 0, says: /app-b on broker west: 1 writes/ },
  { words: `reapply --credential ${keyOf('app-a')}`, status: 0, says: /app-a on broker/ },
  { words: 'reapply --credential nobody', status: 2, says: /no client username that Keymesh holds/ },
  { words: 'confirm --broker east', status: 0, says: /No withdrawal waits/ },
  { words: 'verify', status: 0, says: /mqtt/ },
  { words: 'verify --registration app-a --protocol mqtt --all', status: 0, says: /app-a over mqtt: accepted/ },
  { words: 'drift', status: 0, says: /enabled: false -> true/ },
  { words: 'drift --open', status: 0, says: /No drift on record/ },
  { words: 'pause --broker east', status: 0, says: /Paused: broker east/ },
  { words: 'reconcile --broker east', prepare: () => pauseEast(true), status: 1, says: /failed/ },
  { words: 'pause --list', prepare: () => pauseEast(true), status: 0, says: /broker +east/ },
  { words: 'resume --broker east', status: 0, says: /Resumed: broker east/ },
  { words: 'resume --broker nowhere', status: 2, says: /--broker: there is no broker `nowhere`/ },
  { words: 'pause --registration nobody', status: 2, says: /--registration: there is no registration/ },
  { words: 'explain product orders', status: 0, says: /visible/ },
  { words: 'explain broker east', status: 0, says: /usable/ },
  { words: 'explain registration app-a', status: 0, says: /login of/ },
  { words: 'explain product nothing', status: 2, says: /there is no product `nothing`/ },
  { words: 'orphans', status: 0, says: /No broker holds/ },
  { words: 'orphans --broker east', prepare: leaveOrphan, status: 1, says: /queue +keymesh-a+/ },
  {
    words: `orphans --broker east --delete --kind queue --name ${LOST}`,
    prepare: leaveOrphan,
    status: 0,
    says: /keymesh-a+ +deleted/,
  },
  { words: 'adopt --broker east --kind queue --name theirs', status: 0, says: /Recorded/ },
]

const pauseEast = async (paused: boolean): Promise<void> => {
  await onStore(paused ? 'pause' : 'resume', '--broker', 'east')
}

describe('a command on the store and on a running service', () => {
  it.each(CASES)('prints the same: keymesh $words', async ({ words, prepare = nothing, status, says }) => {
    for (const asked of [words.split(' '), [...words.split(' '), '--json']]) {
      await prepare()
      const first = await onStore(...asked)
      await prepare()
      const second = await onService(...asked)
      expect(sorted(second)).toEqual(sorted(first))
      expect(first.status).toBe(status)
      if (!asked.includes('--json')) expect(first.out + first.err).toMatch(says)
      if (prepare === vandalise) await mesh.sweep()
    }
  })
})

/** A portal file with a document in two files, and a secret from the environment of whoever imports it. */
async function portalFile(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-portal-'))
  await mkdir(join(directory, 'apis'))
  await writeFile(
    join(directory, 'apis', 'tides.yaml'),
    `asyncapi: 2.6.0
info: { title: Tides, version: 1.0.0 }
channels:
  tides/{harbour}/level:
    parameters: { harbour: { schema: { type: string } } }
    subscribe: { message: { $ref: 'message.yaml#/level' } }
`,
  )
  await writeFile(join(directory, 'apis', 'message.yaml'), 'level: { payload: { type: number } }\n')
  const path = join(directory, 'portal.yaml')
  await writeFile(
    path,
    `eventApis: [{ id: tides, name: Tides, version: 1.0.0, document: apis/tides.yaml }]
registrations:
  - id: tide-table
    name: Tide table
    credentials: [{ name: main, consumerKey: tide-table-key, consumerSecretEnv: TIDE_TABLE_SECRET }]
`,
  )
  return path
}

describe('a portal file on the store and on a running service', () => {
  const TIDE_SECRET = 'tide-table-secret-Vw38'
  let path: string
  beforeAll(async () => {
    path = await portalFile()
  })
  afterAll(() => rm(dirname(path), { recursive: true }))
  const withSecret = { TIDE_TABLE_SECRET: TIDE_SECRET }
  const here = (...words: readonly string[]) => keymesh({ ...mesh.env, ...withSecret }, words)
  const there = (...words: readonly string[]) =>
    keymesh({ KEYMESH_URL: server.url, KEYMESH_TOKEN: token, ...withSecret }, words)

  it('is compared, imported once, and found again, with the same words', async () => {
    for (const more of [[], ['--json'], ['--prune']]) {
      const first = await here('import', path, '--dry-run', ...more)
      expect(await there('import', path, '--dry-run', ...more)).toEqual(first)
      expect(first).toMatchObject({ status: more[0] === '--prune' ? 2 : 0 })
    }
    const done = await there('import', path)
    expect(done).toMatchObject({ status: 0, out: expect.stringMatching(/\+ credential .*\n.* created/s) })
    expect(done.out + done.err).not.toContain(TIDE_SECRET)
    for (const again of [await here('import', path), await there('import', path)]) {
      expect(again).toMatchObject({ status: 0, out: expect.stringMatching(/^Nothing to do/) })
    }
    expect(await mesh.secretOf('tide-table-key')).toBe(TIDE_SECRET)
  })

  it('with problems is refused with the same words, whoever finds them', async () => {
    const portal = await readFile(path, 'utf8')
    await writeFile(path, portal.replace('tide-table-key', keyOf('app-a')))
    const first = await here('import', path)
    expect(await there('import', path)).toEqual(first)
    expect(first).toMatchObject({ status: 2, err: expect.stringContaining('portal.yaml') })
    await writeFile(path, portal.replace('apis/tides.yaml', 'apis/none.yaml'))
    expect(await there('import', path)).toEqual(await here('import', path))
    await writeFile(path, portal)
  })

  it('is for administrators alone', async () => {
    const { status, err } = await keymesh({ KEYMESH_URL: server.url, KEYMESH_TOKEN: clerkToken, ...withSecret }, [
      'import',
      path,
    ])
    expect({ status, err }).toEqual({ status: 1, err: expect.stringMatching(/administrator/) })
  })

  it('makes the service read no file and no variable of its own', async () => {
    const asked = { path: '/etc/hostname', texts: {}, realPaths: {}, secrets: {} }
    const body = { ...asked, texts: { 'portal.yaml': await readFile(path, 'utf8') }, path: 'portal.yaml' }
    vi.stubEnv('TIDE_TABLE_SECRET', TIDE_SECRET)
    for (const sent of [asked, body]) {
      const answer = await fetch(`${server.url}/api/v2/operations/portalFile/stream`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(sent),
      })
      const text = await answer.text()
      expect(text).toMatch(/"type":"error","code":"INVALID_INPUT".*was not sent/)
      if (sent === body) expect(text).toContain('the environment variable TIDE_TABLE_SECRET is not set')
    }
  })
})

describe('a command on a service', () => {
  const WRONG = 'kmt.wrong-token.Zq81'
  const ask = (env: Readonly<Record<string, string>>, ...words: readonly string[]) =>
    keymesh({ KEYMESH_TOKEN: token, ...env }, words)

  it.each<readonly [string, Readonly<Record<string, string>>, string, number, RegExp]>([
    ['needs a token', { KEYMESH_TOKEN: '' }, 'status --url https://keymesh.example.com', 2, /KEYMESH_TOKEN: must hold/],
    [
      'does not send it unencrypted to another host',
      {},
      'status --url http://192.0.2.1',
      2,
      /travel unencrypted to 192/,
    ],
    ['is given no address that is none', {}, 'status --url keymesh', 2, /--url: must be a URL/],
    ['says that nobody answers', {}, 'status --url http://127.0.0.1:1', 1, /does not answer: ECONNREFUSED/],
    [
      'sends it when that is allowed',
      {},
      'status --allow-plain-http --url http://nowhere.invalid',
      1,
      /does not answer/,
    ],
    [
      'works on its own host when it is told of none',
      { KEYMESH_URL: '' },
      'keys list --url http://[::1]:1',
      2,
      /run it there/,
    ],
  ])('%s', async (_what, env, words, status, says) => {
    const result = await ask(env, ...words.split(' '))
    expect(result).toMatchObject({ status, out: '' })
    expect(result.err).toMatch(says)
    expect(result.err).not.toContain(token)
  })

  it('says that the token is refused, and does not show it', async () => {
    const { status, err } = await ask({ KEYMESH_URL: server.url, KEYMESH_TOKEN: WRONG }, 'status')
    expect(status).toBe(1)
    expect(err).toMatch(/refuses the token in KEYMESH_TOKEN/)
    expect(err).not.toContain(WRONG)
  })

  it('does what the token may do, and no more', async () => {
    const env = { KEYMESH_URL: server.url, KEYMESH_TOKEN: readToken }
    expect((await ask(env, 'plan', '--broker', 'west')).status).toBe(0)
    for (const words of [
      ['reconcile'],
      ['pause', '--broker', 'west'],
      ['orphans', '--broker', 'west', '--delete', '--all'],
    ]) {
      const { status, out, err } = await ask(env, ...words)
      expect({ status, out }).toEqual({ status: 1, out: '' })
      expect(err).toMatch(/refuses: .*services:put/)
    }
  })

  it('tells apart what is no Keymesh, and an answer that was cut', async () => {
    await using front = await HttpFront.start(server.url)
    const env = { KEYMESH_URL: front.url }
    front.failWith((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>')
      return true
    })
    expect((await ask(env, 'status')).err).toMatch(/is not the operations API/)
    expect((await ask(env, 'reconcile')).err).toMatch(/is not the operations API/)
    front.failWith((_request, response) => {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end('{"message":"There is no resource \\"GET /x\\"."}')
      return true
    })
    expect((await ask(env, 'explain', 'broker', 'east')).err).toMatch(/is not the operations API/)
    front.failWith((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      response.write(
        '\n\n{"type":"event","event":{"type":"broker-failed","brokerId":"east","code":"X","error":"no"}}\n',
      )
      response.end()
      return true
    })
    const cut = await ask(env, 'reconcile')
    expect(cut).toMatchObject({ status: 1, out: 'east: failed: no\n' })
    expect(cut.err).toMatch(/ended before the work did/)
  })
})

describe('a broker that is away', () => {
  beforeAll(async () => {
    await mesh.broker(1).stop()
    // What the service has just read of a broker serves it for a moment, and then something else fails first.
    await vi.waitFor(
      async () => {
        const { out, err } = await onService('plan', '--broker', 'west')
        expect(out + err).toMatch(/read message VPN/)
      },
      { timeout: 10_000, interval: 100 },
    )
  })

  it.each(['plan --broker west', 'orphans --broker west', 'verify --broker west', 'reconcile'])(
    'is told of in the same words: %s',
    async (words) => {
      const [first, second] = [await onStore(...words.split(' ')), await onService(...words.split(' '))]
      expect(sorted(second)).toEqual(sorted(first))
      expect(first.status).toBe(1)
      expect(first.out + first.err).toMatch(/nothing can be reached there/)
    },
  )
})
