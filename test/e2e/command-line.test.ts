import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { stringify } from 'yaml'
import type { CommandDependencies } from '../../src/cli/command.ts'
import { createProgram, runCommandLine } from '../../src/cli/program.ts'
import { Secret } from '../../src/domain/secret.ts'
import { addKey, formatKeyRing, newKey, parseKeyRing, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'

const SEMP_PASSWORD = 'semp-password-Jw72'
const GIVEN_SECRET = 'given-consumer-secret-Pk93'
const NAMES = ['east', 'west'] as const

let mesh: TestMesh
let directory: string
/** All that any command wrote anywhere, to look for secrets at the end. */
let printed = ''

beforeAll(async () => {
  mesh = await withMesh({ brokers: NAMES.map((name) => ({ name })), sandbox: { password: SEMP_PASSWORD } })
  directory = await mkdtemp(join(tmpdir(), 'keymesh-command-line-'))
  await writeFile(join(directory, 'meters.json'), JSON.stringify(METERS))
})
afterAll(async () => {
  await rm(directory, { recursive: true, force: true })
  await mesh[Symbol.asyncDispose]()
})
beforeEach(() => {
  for (const [name, value] of Object.entries({ ...mesh.env, METER_SEMP_PASSWORD: SEMP_PASSWORD }))
    vi.stubEnv(name, value)
})
afterEach(() => {
  vi.unstubAllEnvs()
})

interface Result {
  readonly status: number
  readonly out: string
  readonly err: string
}

/** One command, as a shell runs it. */
async function keymesh(...words: readonly string[]): Promise<Result> {
  const written = { out: '', err: '' }
  const stream = (name: 'out' | 'err') => ({
    write: (text: string) => {
      written[name] += text
    },
  })
  const status = await runCommandLine(['node', 'keymesh', ...words], { out: stream('out'), err: stream('err') })
  printed += written.out + written.err
  return { status, ...written }
}

/** The JSON documents that a command printed, one on each line. */
const documents = ({ out }: Result): readonly Readonly<Record<string, unknown>>[] =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

const METERS = {
  asyncapi: '2.6.0',
  info: { title: 'Meters', version: '1.0.0' },
  channels: {
    'meter/{site}/reading': {
      parameters: { site: { schema: { type: 'string', enum: ['harbour', 'hill'] } } },
      subscribe: { message: { payload: { type: 'object' } } },
    },
    'meter/{site}/reset': {
      parameters: { site: { schema: { type: 'string' } } },
      publish: { message: { payload: { type: 'object' } } },
    },
  },
}

const broker = (index: number) => ({
  id: NAMES[index],
  name: NAMES[index],
  eventMesh: 'mesh',
  management: {
    url: mesh.broker(index).url,
    msgVpn: 'sandbox',
    username: 'admin',
    passwordEnv: 'METER_SEMP_PASSWORD',
    timeoutMs: 2000,
  },
  messaging: { host: `${NAMES[index]}.example`, protocols: { smfs: 55443 } },
})

const portal = () => ({
  environments: [{ id: 'test', name: 'Test' }],
  eventMeshes: [{ id: 'mesh', name: 'Mesh', environment: 'test' }],
  brokers: [broker(0), broker(1)],
  applicationDomains: [{ id: 'energy', name: 'Energy' }],
  eventApis: [{ id: 'meters', version: '1.0.0', applicationDomain: 'energy', document: 'meters.json' }],
  products: [
    {
      id: 'readings',
      name: 'Readings',
      shared: true,
      versions: [
        {
          version: '1.0.0',
          state: 'RELEASED',
          public: true,
          eventApis: ['meters'],
          plans: [{ id: 'direct', name: 'Direct', messageDeliveryMode: 'direct' }],
          brokers: [...NAMES],
        },
      ],
    },
    {
      id: 'tariffs',
      name: 'Tariffs',
      versions: [{ version: '0.1.0', state: 'DRAFT', eventApis: ['meters'], plans: [], brokers: [] }],
    },
  ],
  registrations: ['billing', 'dashboard'].map((id) => ({
    id,
    name: id,
    source: 'test',
    accessRequests: [{ id: `${id}-readings`, product: 'readings', plan: 'direct' }],
    credentials: [{ name: 'main', consumerKey: `key-of-${id}`, consumerSecret: `${GIVEN_SECRET}-${id}` }],
  })),
})

async function portalFile(name: string, content: object | string = portal()): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, typeof content === 'string' ? content : stringify(content))
  return path
}

describe('the help', () => {
  const unused: CommandDependencies = {
    withContext: () => Promise.reject(new Error('help opens nothing')),
    output: () => {
      throw new Error('help prints by itself')
    },
    exitWith: () => undefined,
    signal: new AbortController().signal,
  }
  const streams = { out: { write: () => undefined }, err: { write: () => undefined } }
  const pathsOf = (command: Command, path: readonly string[]): readonly (readonly string[])[] =>
    command.commands.flatMap((each) => [[...path, each.name()], ...pathsOf(each, [...path, each.name()])])
  const paths = pathsOf(createProgram(unused, streams), [])

  it('lists every command', async () => {
    const { status, out } = await keymesh('--help')
    expect(status).toBe(0)
    // What the scripts of shells ask is not for people.
    const shown = paths.filter(([name]) => name !== 'complete')
    for (const [name] of shown) expect(out).toMatch(new RegExp(`^  ${name} `, 'm'))
  })

  it.each(paths.map((path) => [path.join(' ')]))('of %s says what it does and how it is called', async (path) => {
    const { status, out, err } = await keymesh(...path.split(' '), '--help')
    expect({ status, err }).toEqual({ status: 0, err: '' })
    expect(out).toContain(`Usage: keymesh ${path}`)
    expect(out).toMatch(/--help/)
  })

  it('is where a wrong command line points to', async () => {
    for (const words of [
      ['reconsile'],
      ['plan', '--brokers'],
      ['drift', '--limit', '0'],
      ['adopt'],
      ['keys', 'rotate', '-x'],
    ]) {
      const { status, out, err } = await keymesh(...words)
      expect({ words, status, out }).toEqual({ words, status: 2, out: '' })
      expect(err).toContain('keymesh --help shows what there is')
    }
  })

  it('a version is printed', async () => {
    expect(await keymesh('--version')).toMatchObject({ status: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})

describe('a wrong environment', () => {
  it.each([
    ['a misspelt setting', { KEYMESH_CONCURENCY: '4' }, 'KEYMESH_CONCURENCY: is not a setting of Keymesh'],
    ['a bad value', { KEYMESH_CONCURRENCY: 'many' }, 'KEYMESH_CONCURRENCY: must be a whole number'],
    ['no key ring for a database', { KEYMESH_KEYS: '' }, 'KEYMESH_KEYS: must be given with DATABASE_URL'],
  ])('%s is bad input', async (_title, env, message) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    const { status, out, err } = await keymesh('status')
    expect({ status, out }).toEqual({ status: 2, out: '' })
    expect(err).toContain(message)
  })

  it('a truncated key is a clear error', async () => {
    vi.stubEnv('KEYMESH_KEYS', String(mesh.env.KEYMESH_KEYS).slice(0, 40))
    const { status, err } = await keymesh('status')
    expect(status).toBe(1)
    expect(err).toContain('The key ring in KEYMESH_KEYS cannot be used')
  })
})

describe('from a portal file to brokers in step, with commands only', () => {
  it('`import` refuses a file with all its problems, each with its line, and writes nothing', async () => {
    const [first, second] = portal().registrations
    const broken = {
      ...portal(),
      registrations: [first, { ...second, accessRequests: [{ id: 'request', product: 'redings', plan: 'direct' }] }],
      products: portal().products.map((product) => ({ ...product, shard: true })),
    }
    const path = await portalFile('broken.yaml', broken)
    const { status, out, err } = await keymesh('import', path)
    expect({ status, out }).toEqual({ status: 2, out: '' })
    expect(err).toMatch(/has 3 problems/)
    expect(err.match(/broken\.yaml:\d+/g)?.length).toBeGreaterThanOrEqual(3)
    expect(err).toContain('redings')
    expect(await keymesh('import', await portalFile('no.yaml', 'brokers: [\n'))).toMatchObject({ status: 2 })
    expect(await keymesh('import', join(directory, 'not-there.yaml'))).toMatchObject({ status: 2 })
    expect(await keymesh('status', '--json')).toMatchObject({ out: '' })
  })

  it('`import --dry-run` prints the change and writes nothing', async () => {
    const path = await portalFile('portal.yaml')
    const { status, out } = await keymesh('import', path, '--dry-run')
    expect(status).toBe(0)
    expect(out).toContain('billing')
    const [json] = documents(await keymesh('import', path, '--dry-run', '--json'))
    expect(json).toMatchObject({ dryRun: true, raised: [] })
    expect(json?.changes).not.toEqual([])
    expect(await keymesh('status')).toMatchObject({ out: expect.stringContaining('No brokers yet') })
  })

  it('`import` writes it, once', async () => {
    const path = await portalFile('portal.yaml')
    const [json] = documents(await keymesh('import', path, '--json'))
    expect(json).toMatchObject({ dryRun: false, raised: ['billing', 'dashboard'] })
    const again = await keymesh('import', path, '--json')
    expect(again.status).toBe(0)
    expect(documents(again)).toMatchObject([{ changes: [], raised: [] }])
  })

  it('`explain product` says which rule fails', async () => {
    const visible = await keymesh('explain', 'product', 'readings')
    expect(visible).toMatchObject({ status: 0, out: expect.stringContaining('Readings (readings) 1.0.0: visible') })
    const hidden = await keymesh('explain', 'product', 'tariffs')
    expect(hidden).toMatchObject({ status: 0, out: expect.stringContaining('Tariffs (tariffs) 0.1.0: not visible') })
    expect(hidden.out).toMatch(/fail shared: .*Set `shared: true` on the product/)
    expect(documents(await keymesh('explain', 'product', 'tariffs', '--json'))).toMatchObject([{ id: 'tariffs' }])
    expect(await keymesh('explain', 'product', 'nothing')).toMatchObject({ status: 2, out: '' })
    expect(await keymesh('explain', 'broker', 'east')).toMatchObject({
      status: 0,
      out: expect.stringContaining('broker east: usable'),
    })
  })

  it('`explain registration` says what it waits for', async () => {
    const { status, out } = await keymesh('explain', 'registration', 'billing')
    expect({ status, out }).toEqual({ status: 0, out: expect.stringMatching(/billing-readings.*APPROVED\. .*LIVE/) })
    expect(out).toContain('broker east: lagging')
    expect(documents(await keymesh('explain', 'registration', 'billing', '--json'))).toMatchObject([
      { accessRequests: [{ state: 'APPROVED' }], brokers: [{ brokerId: 'east', needsPerson: false }, {}] },
    ])
    expect((await keymesh('explain', 'registration', 'nobody')).status).toBe(2)
  })

  it('`plan` prints what a run would do, and does nothing', async () => {
    const text = await keymesh('plan', '--broker', 'east')
    expect(text.status).toBe(1)
    expect(text.out).toContain('registration billing on broker east, generation 1')
    expect(text.out).toContain('+ create client username key-of-billing (not-created-yet)')
    expect(text.out).toContain('2 registrations with something to do.')
    const json = documents(await keymesh('plan', '--json'))
    expect(json.map(({ registrationId, brokerId }) => `${registrationId} ${brokerId}`).toSorted()).toEqual([
      'billing east',
      'billing west',
      'dashboard east',
      'dashboard west',
    ])
    expect(mesh.writes()).toBe(0)
    const one = documents(await keymesh('plan', '--registration', 'billing', '--broker', 'west', '--json'))
    expect(one).toMatchObject([{ registrationId: 'billing', brokerId: 'west' }])
    expect(await keymesh('status')).toMatchObject({ status: 1 })
  })

  it('`reconcile` makes it so, and then there is nothing to do', async () => {
    const one = await keymesh('reconcile', '--registration', 'billing', '--broker', 'east', '--json')
    expect(one.status).toBe(0)
    expect(documents(one)).toMatchObject([{ registrationId: 'billing', brokerId: 'east', status: 'done' }])
    const all = await keymesh('reconcile', '--json')
    expect(all.status).toBe(0)
    expect(documents(all)).toMatchObject([
      { brokerId: 'east', changed: 1, failed: 0 },
      { brokerId: 'west', changed: 2, failed: 0 },
    ])
    for (const index of NAMES.keys()) {
      expect(mesh.broker(index).state.passwordOf('key-of-billing')).toBe(`${GIVEN_SECRET}-billing`)
    }
    expect(await keymesh('plan')).toEqual({
      status: 0,
      out: 'Nothing to do: the brokers hold what they should.\n',
      err: '',
    })
    expect(await keymesh('reconcile')).toMatchObject({
      status: 0,
      out: expect.stringContaining('2 registrations compared; looked at closely: 0 changed, 0 already right'),
    })
  })

  it('`status` says so', async () => {
    const { status, out } = await keymesh('status')
    expect(status).toBe(0)
    expect(out).toMatch(/^east\s+Mesh\s+yes, SEMP 2\.49\s+done \d+ s ago\s+2\/2\s+0\s+0\s+0\s+0\s+-$/m)
    expect(documents(await keymesh('status', '--json', '--broker', 'west'))).toMatchObject([
      { brokerId: 'west', reachable: true, registrations: { total: 2, inSync: 2, error: 0 }, reasons: [] },
    ])
  })

  it('`drift` lists what was found and repaired', async () => {
    expect(await keymesh('drift')).toMatchObject({ status: 0, out: 'No drift on record.\n' })
    const { state } = mesh.broker(0)
    state.clientUsernames.remove('key-of-billing')
    state.aclProfiles.change('dashboard', { subscribeTopicDefaultAction: 'allow' })
    expect(await keymesh('plan')).toMatchObject({ status: 1 })
    expect(await keymesh('reconcile', '--broker', 'east')).toMatchObject({ status: 0 })
    const { status, out } = await keymesh('drift')
    expect(status).toBe(0)
    expect(out).toMatch(/east\s+billing\s+clientUsername key-of-billing\s+missing\s+the object was gone\s+repaired/)
    expect(out).toMatch(/subscribeTopicDefaultAction: allow -> disallow\s+repaired/)
    expect(documents(await keymesh('drift', '--json', '--registration', 'dashboard'))).toMatchObject([
      { objectName: 'dashboard', kind: 'changed', action: 'repaired', repairedAtMs: expect.any(Number) },
    ])
    expect(documents(await keymesh('drift', '--json', '--limit', '1'))).toHaveLength(1)
    expect(await keymesh('drift', '--json', '--open')).toMatchObject({ out: '' })
    expect(await keymesh('drift', '--json', '--broker', 'west')).toMatchObject({ out: '' })
  })

  it('what drops clients waits until `--allow-disruptive`', async () => {
    mesh.broker(0).state.clientUsernames.change('key-of-billing', { aclProfileName: 'default' })
    const waiting = await keymesh('reconcile', '--broker', 'east')
    expect(waiting).toMatchObject({ status: 1, out: expect.stringContaining('1 waiting for a person') })
    expect(await keymesh('plan', '--broker', 'east')).toMatchObject({
      status: 1,
      out: expect.stringContaining('[drops live clients; held: '),
    })
    expect(await keymesh('status')).toMatchObject({ status: 1, out: expect.stringContaining('waits for an operator') })
    expect(await keymesh('drift', '--open')).toMatchObject({ out: expect.stringContaining('held: changed-on-broker') })
    expect(await keymesh('reconcile', '--broker', 'east', '--allow-disruptive')).toMatchObject({ status: 0 })
    expect(await keymesh('status')).toMatchObject({ status: 0 })
  })

  it('`adopt` takes a foreign object over', async () => {
    const { state } = mesh.broker(1)
    state.clientUsernames.put('key-of-new', { enabled: true, password: 'somebody-elses' })
    const [given] = portal().registrations
    const added = {
      ...given,
      id: 'new',
      accessRequests: [{ id: 'new-readings', product: 'readings', plan: 'direct' }],
      credentials: [{ name: 'main', consumerKey: 'key-of-new', consumerSecret: `${GIVEN_SECRET}-new` }],
    }
    const file = await portalFile('portal.yaml', { ...portal(), registrations: [...portal().registrations, added] })
    expect(await keymesh('import', file)).toMatchObject({ status: 0 })
    expect(await keymesh('reconcile')).toMatchObject({ status: 1 })
    expect(state.passwordOf('key-of-new')).toBe('somebody-elses')
    const run = await keymesh('reconcile', '--registration', 'new', '--broker', 'west')
    expect(run).toMatchObject({ status: 1, out: expect.stringContaining('! conflict: client username key-of-new') })

    const adopt = ['adopt', '--broker', 'west', '--kind', 'clientUsername', '--name', 'key-of-new'] as const
    expect(await keymesh('adopt', '--broker', 'west', '--kind', 'user', '--name', 'x')).toMatchObject({ status: 2 })
    expect(await keymesh('adopt', '--broker', 'south', '--kind', 'queue', '--name', 'x')).toMatchObject({ status: 2 })
    expect(await keymesh(...adopt, '--json')).toMatchObject({ status: 0 })
    expect(await keymesh('reconcile', '--registration', 'new', '--allow-disruptive')).toMatchObject({ status: 0 })
    expect(state.passwordOf('key-of-new')).toBe(`${GIVEN_SECRET}-new`)
  })

  it('`pause` stops work until `resume`', async () => {
    const pauses = async () =>
      documents(await keymesh('pause', '--list', '--json')).map(({ scope, id, pausedBy }) => [scope, id, pausedBy])
    expect(await keymesh('pause', '--list')).toEqual({ status: 0, out: 'Nothing is paused.\n', err: '' })
    expect(await keymesh('pause', '--registration', 'billing')).toMatchObject({
      status: 0,
      out: 'Paused: registration billing. `keymesh resume` lets it go on.\n',
    })
    expect(await keymesh('reconcile', '--registration', 'billing', '--broker', 'east')).toMatchObject({
      status: 1,
      out: expect.stringContaining('is paused'),
    })
    expect(documents(await keymesh('pause', '--broker', 'west', '--json'))).toEqual([
      { scope: 'broker', id: 'west', paused: true },
    ])
    expect(await keymesh('pause', '--account')).toMatchObject({ status: 0 })
    expect(await pauses()).toEqual([
      ['account', null, 'host'],
      ['broker', 'west', null],
      ['registration', 'billing', 'host'],
    ])
    expect((await keymesh('pause', '--list')).out).toMatch(/^registration +billing +host +\d{4}-/m)
    for (const words of [['--account'], ['--broker', 'west'], ['--registration', 'billing']]) {
      expect(await keymesh('resume', ...words)).toMatchObject({ status: 0, out: expect.stringMatching(/^Resumed: /) })
    }
    expect(documents(await keymesh('resume', '--account', '--json'))).toEqual([
      { scope: 'account', id: null, paused: false, lagging: 0 },
    ])
    expect(await pauses()).toEqual([])
    expect(await keymesh('reconcile', '--registration', 'billing', '--broker', 'east')).toMatchObject({ status: 0 })
    for (const words of [[], ['--account', '--broker', 'west'], ['--broker', 'north'], ['--registration', 'nobody']]) {
      for (const name of ['pause', 'resume']) expect((await keymesh(name, ...words)).status).toBe(2)
    }
  })

  it('`reapply` writes a password again', async () => {
    expect(await keymesh('reapply')).toMatchObject({ status: 2 })
    expect(await keymesh('reapply', '--credential', 'nobody')).toMatchObject({ status: 2 })
    for (const index of NAMES.keys()) mesh.broker(index).state.setPassword('key-of-billing', 'somebody-elses')
    const { status, out } = await keymesh('reapply', '--credential', 'key-of-billing')
    expect(status).toBe(0)
    expect(out).toContain('write the password of client username key-of-billing')
    for (const index of NAMES.keys()) {
      expect(mesh.broker(index).state.passwordOf('key-of-billing')).toBe(`${GIVEN_SECRET}-billing`)
    }
  })

  it('`import --prune` removes a registration, and says first what that is', async () => {
    const file = await portalFile('portal.yaml')
    expect(await keymesh('import', file, '--yes-prune', '1')).toMatchObject({ status: 2 })
    expect(await keymesh('import', file, '--prune', '--dry-run')).toMatchObject({
      status: 0,
      out: expect.stringContaining('new'),
    })
    expect(await keymesh('import', file, '--prune')).toMatchObject({ status: 0 })
    expect(await keymesh('reconcile')).toMatchObject({ status: 0 })
    for (const index of NAMES.keys()) {
      expect(mesh.broker(index).state.clientUsernames.get('key-of-new')?.enabled).toBe(false)
    }
  })

  it('`confirm` finds nothing to confirm', async () => {
    expect(await keymesh('confirm', '--broker', 'east')).toMatchObject({
      status: 0,
      out: expect.stringContaining('No withdrawal waits for a confirmation'),
    })
  })

  it('names what it does not know', async () => {
    const unknown = await keymesh('plan', '--broker', 'south')
    expect(unknown).toMatchObject({ status: 2, out: '' })
    expect(unknown.err).toContain('there is no broker south with complete management settings; known: east, west')
    expect(await keymesh('reconcile', '--registration', 'nobody')).toMatchObject({ status: 2 })
  })

  it('goes on with the other brokers when one is gone', async () => {
    await mesh.broker(0).stop()
    mesh.broker(1).state.clientUsernames.remove('key-of-billing')
    const { status, out } = await keymesh('reconcile')
    expect(status).toBe(1)
    expect(out).toMatch(/^east: failed: Could not read message VPN "sandbox" at .*: nothing can be reached there/m)
    expect(out).toMatch(/^west: .* 1 changed/m)
    expect(documents(await keymesh('reconcile', '--json'))).toMatchObject([
      { brokerId: 'east', code: 'BROKER_UNREACHABLE' },
      { brokerId: 'west', failed: 0 },
    ])
    expect(await keymesh('status')).toMatchObject({ status: 1, out: expect.stringMatching(/^east\s+Mesh\s+no /m) })
    await mesh.broker(0).start()
    expect(await keymesh('reconcile')).toMatchObject({ status: 0 })
    expect(await keymesh('status')).toMatchObject({ status: 0 })
  })
})

describe('`keys`', () => {
  it('generates a key that can be used', async () => {
    const { status, out } = await keymesh('keys', 'generate')
    expect(status).toBe(0)
    expect(parseKeyRing(new Secret(out), 'a test').keys.size).toBe(1)
  })

  it('rotates online, and what was sealed opens with the new key alone', async () => {
    const ring = parseKeyRing(new Secret(String(mesh.env.KEYMESH_KEYS)), 'a test')
    const { kid, key } = newKey()
    vi.stubEnv('KEYMESH_KEYS', formatKeyRing(promoteKey(addKey(ring, kid, key), kid)).reveal())
    const rotated = await keymesh('keys', 'rotate', '--json')
    expect(rotated.status).toBe(0)
    expect(documents(rotated)).toMatchObject([{ kid, complete: true, unreadableCount: 0, oldKids: [ring.current] }])
    const listed = documents(await keymesh('keys', 'list', '--json'))
    expect(listed.find((each) => each.kid === ring.current)).toMatchObject({ secrets: 0 })

    vi.stubEnv('KEYMESH_KEYS', formatKeyRing(removeKey(promoteKey(addKey(ring, kid, key), kid), ring.current)).reveal())
    mesh.broker(0).state.setPassword('key-of-billing', 'somebody-elses')
    expect(await keymesh('reapply', '--credential', 'key-of-billing')).toMatchObject({ status: 0 })
    expect(mesh.broker(0).state.passwordOf('key-of-billing')).toBe(`${GIVEN_SECRET}-billing`)

    // The old key opens nothing any more, and that loses nothing.
    vi.stubEnv('KEYMESH_KEYS', String(mesh.env.KEYMESH_KEYS))
    const wrong = await keymesh('reconcile', '--json')
    expect(wrong.status).toBe(1)
    expect(documents(wrong).map(({ code }) => code)).toEqual(['KEY_MISSING', 'KEY_MISSING'])
    expect(await keymesh('keys', 'list')).toMatchObject({ status: 1, out: expect.stringContaining('missing') })
  })
})

it('no command printed a secret', () => {
  expect(printed.length).toBeGreaterThan(1000)
  for (const secret of [SEMP_PASSWORD, GIVEN_SECRET, 'somebody-elses']) expect(printed.includes(secret)).toBe(false)
})
