import { describe, expect, it } from 'vitest'
import type { Context } from '../../src/context.ts'
import { codeOf } from '../../src/domain/errors.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { createJobServices } from '../../src/services.ts'
import { until } from '../helpers/service.ts'
import { suppliedCredential } from './import-fixtures.ts'
import { client, keyOf } from './reconcile-fixtures.ts'
import { Replicas } from './scale-out-fixtures.ts'

const APP = 'app'
/** The same for all. */
const LEASE = { KEYMESH_LEASE: '1s' }
const OTHER_KEY = 'other-key-of-app'
const withSecret = (secret: string, overrides: Partial<PortalRegistration> = {}): PortalRegistration =>
  client(APP, { credentials: [suppliedCredential('main', keyOf(APP), secret)], ...overrides })
const [FIRST, SECOND, THIRD] = ['first-secret-Rk31', 'second-secret-Rk31', 'third-secret-Rk31'] as const

interface Workers extends AsyncDisposable {
  readonly replicas: Replicas
  readonly paused: Context
  readonly other: Context
}

/** The app in effect with its first secret; a lease ends when its holder is silent for a second. */
async function inEffect(): Promise<Workers> {
  const replicas = await Replicas.open([withSecret(FIRST)])
  try {
    const [paused, other] = [await replicas.replica('paused', LEASE), await replicas.replica('other', LEASE)]
    await other.engine.reconcilePair(replicas.mesh.pair(APP), { trigger: 'on-demand' })
    return { replicas, paused, other, [Symbol.asyncDispose]: () => replicas[Symbol.asyncDispose]() }
  } catch (error) {
    await replicas[Symbol.asyncDispose]()
    throw error
  }
}

/** A run of the pair: what it came to, or the code of what it failed with. */
const run = async ({ engine }: Context, { mesh }: Replicas): Promise<string> =>
  engine.reconcilePair(mesh.pair(APP), { trigger: 'on-demand' }).then(({ status }) => status, codeOf)

async function expectAtRest({ mesh, requestState }: Replicas): Promise<void> {
  expect(await mesh.pairs()).toMatchObject([{ state: 'in-sync' }])
  expect(await requestState(APP)).toBe('LIVE')
  expect(await mesh.plans()).toEqual([])
}

/** What a poll and what it finds do, until nothing is left; then one sweep. */
async function nextPass(context: Context, { mesh }: Replicas): Promise<void> {
  const services = createJobServices(context)
  const { signal } = new AbortController()
  await until('the poll finds nothing', async () => {
    const lagging = await services.laggingPairs(10)
    for (const pair of lagging) await services.reconcilePair(pair, 'poll', signal).catch(() => undefined)
    return lagging.length === 0 ? true : null
  })
  await context.engine.sweep(mesh.key(), { trigger: 'sweep' })
}

/**
 * The paused worker sets out on what `planned` asks for and is held up with its first write on the way to the broker;
 * meanwhile `wanted` is asked for, its lease runs out, and the other worker does that. Answers how to let the write arrive.
 */
async function overtake(
  { replicas, paused, other }: Workers,
  planned: PortalRegistration,
  wanted: PortalRegistration,
): Promise<() => Promise<void>> {
  const { mesh, tap } = replicas
  await mesh.import({ registrations: [planned] }, { prune: true })
  const stopped = tap.hold({ write: 1, moment: 'before' })
  const late = run(paused, replicas)
  await stopped
  const release = tap.keep()
  await mesh.import({ registrations: [wanted] }, { prune: true })
  await until('the lease passes to the other', async () => ((await run(other, replicas)) === 'done' ? true : null))
  expect(await replicas.requestState(APP)).toBe('LIVE')
  return async () => {
    release()
    expect(await late).toBe('SUPERSEDED')
  }
}

const region = (...regions: readonly string[]): PortalRegistration =>
  withSecret(FIRST, { filters: { region: regions } })

describe('a worker that is silent for longer than its lease loses it to another, and what it still sends', {
  timeout: 90_000,
}, () => {
  it('as a password, is found and replaced by the next pass', async () => {
    await using workers = await inEffect()
    const { replicas, other } = workers
    const { mesh } = replicas
    const { state } = mesh.broker()
    const arrive = await overtake(workers, withSecret(SECOND), withSecret(THIRD))
    expect(state.passwordOf(keyOf(APP))).toBe(THIRD)
    await arrive()
    expect(state.passwordOf(keyOf(APP))).toBe(SECOND)
    await nextPass(other, replicas)
    expect(state.passwordOf(keyOf(APP))).toBe(THIRD)
    await expectAtRest(replicas)
  })

  it('as a topic that is allowed no more, is found and removed by the next sweep', async () => {
    await using workers = await inEffect()
    const { replicas, other } = workers
    const { mesh } = replicas
    const { aclProfiles } = mesh.broker().state
    const allowed = () => aclProfiles.members(APP, 'publishTopicExceptions')
    const arrive = await overtake(workers, region('europe', 'asia'), region('europe'))
    expect(allowed()).toEqual(['smf,orders/europe/cancel'])
    await arrive()
    expect(allowed()).toHaveLength(2)
    await nextPass(other, replicas)
    expect(allowed()).toEqual(['smf,orders/europe/cancel'])
    await expectAtRest(replicas)
  })

  it('as the end of a credential that is wanted again, is found and undone by the next sweep', async () => {
    await using workers = await inEffect()
    const { replicas, other } = workers
    const { mesh } = replicas
    const { state } = mesh.broker()
    const both = [suppliedCredential('main', keyOf(APP), FIRST), suppliedCredential('other', OTHER_KEY, SECOND)]
    await mesh.import({ registrations: [withSecret(FIRST, { credentials: both })] })
    expect(await run(other, replicas)).toBe('done')
    // The same key is a new credential, and a new version of its password.
    const again = [both[0], suppliedCredential('other', OTHER_KEY, THIRD)].flatMap((each) => each ?? [])
    const arrive = await overtake(workers, withSecret(FIRST), withSecret(FIRST, { credentials: again }))
    expect(state.checkLogin(OTHER_KEY, THIRD)).toBe('accepted')
    await arrive()
    expect(state.checkLogin(OTHER_KEY, THIRD)).toBe('shutdown')
    await nextPass(other, replicas)
    expect(state.checkLogin(OTHER_KEY, THIRD)).toBe('accepted')
    await expectAtRest(replicas)
  })
})

describe('a worker whose registration changes while it is at work', { timeout: 90_000 }, () => {
  it('sends nothing more for the generation that is over, and the next run ends right', async () => {
    await using workers = await inEffect()
    const { replicas, paused, other } = workers
    const { mesh, tap } = replicas
    // Each of these topics is a write, one level before the new password.
    const planned = client(APP, {
      filters: { region: ['europe', 'asia'] },
      credentials: [suppliedCredential('main', keyOf(APP), SECOND)],
    })
    await mesh.import({ registrations: [planned] }, { prune: true })
    const stopped = tap.hold({ write: 1, moment: 'after' })
    const late = run(paused, replicas)
    await stopped
    const release = tap.keep()
    const sent = replicas.writes.length
    await mesh.import({ registrations: [withSecret(THIRD)] })
    const heldAtMs = performance.now()
    await until('the last answer on the lease is too old', () => (performance.now() - heldAtMs > 500 ? true : null))
    release()
    expect(await late).toBe('SUPERSEDED')
    const after = replicas.writes.slice(sent).map(({ method, path }) => `${method} ${path}`)
    expect(after.filter((write) => write.includes('clientUsernames'))).toEqual([])
    expect(mesh.broker().state.passwordOf(keyOf(APP))).toBe(FIRST)
    await nextPass(other, replicas)
    expect(mesh.broker().state.passwordOf(keyOf(APP))).toBe(THIRD)
    await expectAtRest(replicas)
  })
})

describe('workers that are asked for one registration at once', { timeout: 90_000 }, () => {
  it('work on it one after the other', async () => {
    await using workers = await inEffect()
    const { replicas, paused, other } = workers
    const { mesh } = replicas
    const contexts = [paused, other, await replicas.replica('third', LEASE)]
    const before = replicas.writes.length
    for (let round = 1; round <= 8; round += 1) {
      await mesh.import({ registrations: [withSecret(`secret-of-round-${round}`)] })
      const ended = await Promise.all(contexts.flatMap((each) => [run(each, replicas), run(each, replicas)]))
      expect(ended.filter((each) => each === 'done').length).toBeGreaterThanOrEqual(1)
      expect(new Set(ended)).toEqual(new Set(ended.includes('busy') ? ['done', 'busy'] : ['done']))
      expect(mesh.broker().state.passwordOf(keyOf(APP))).toBe(`secret-of-round-${round}`)
    }
    // One password for each round, and never two on the way at once.
    expect(replicas.writes.slice(before).map(({ method }) => method)).toEqual(Array.from({ length: 8 }, () => 'PATCH'))
    expect(replicas.overlaps(() => APP)).toEqual([])
    await expectAtRest(replicas)
  })
})
