import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createSmfLogin } from '../../src/login/smf.ts'
import { createSmfClient, type SmfClient, type SmfLoginRequest, type Solclient } from '../../src/login/smf-client.ts'
import { createSmfThread } from '../../src/login/smf-thread.ts'
import { GOOD, targetOf, until } from './login-fixtures.ts'

const ENTRY = new URL('../helpers/smf-thread-entry.ts', import.meta.url)

const request = (username: string): SmfLoginRequest => ({
  url: 'tcp://localhost:1',
  msgVpnName: 'sandbox',
  username,
  password: 'password',
  compressed: false,
  trustFile: null,
  commonNames: null,
  timeoutMs: 10_000,
})
const short = (verdict: Verdict): string =>
  verdict.outcome === 'not-verified' ? `not-verified ${verdict.reason}` : verdict.outcome

let thread: SmfClient
beforeEach(() => {
  thread = createSmfThread({ entry: ENTRY, hangingMs: 1000 })
})
afterEach(async () => {
  thread.close()
  await until(() => ports() === 0)
})
const logIn = async (username: string, signal = new AbortController().signal) =>
  short(await thread.logIn(request(username), signal))

/** What keeps this process from ending. */
const ports = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length

describe('a thread for the SMF client', () => {
  it('does many logins side by side, one after the other, and again after it was closed', async () => {
    const many = await Promise.all(Array.from({ length: 20 }, () => logIn('ann')))
    expect(new Set(many)).toEqual(new Set(['accepted']))
    expect(await logIn('ann')).toBe('accepted')
    thread.close()
    expect(await logIn('ann')).toBe('accepted')
  })

  it.each(['throws later', 'leaves', 'takes all memory'])(
    'that %s ends its logins, and the next has a new one',
    async (how) => {
      const waiting = logIn('waits')
      expect(await logIn(how)).toBe('not-verified unknown')
      expect(await waiting).toBe('not-verified unknown')
      expect(await logIn('ann')).toBe('accepted')
    },
  )

  it('ends its logins when it is closed under them', async () => {
    const waiting = logIn('waits')
    await logIn('ann')
    thread.close()
    expect(await waiting).toBe('not-verified unknown')
  })

  it('is told of an abort, and answers at once whatever the thread does', async () => {
    const controller = new AbortController()
    const waiting = logIn('waits', controller.signal)
    await logIn('ann')
    controller.abort()
    expect(await waiting).toBe('not-verified timeout')
    expect(await logIn('ann')).toBe('accepted')
    expect(await logIn('waits', AbortSignal.abort())).toBe('not-verified timeout')
  })

  it('lets go of a login that was aborted, long before it would be taken for one that hangs', async () => {
    const patient = createSmfThread({ entry: ENTRY })
    const controller = new AbortController()
    const waiting = patient.logIn(request('waits'), controller.signal)
    expect(ports()).toBeGreaterThan(0)
    controller.abort()
    await waiting
    await until(() => ports() === 0)
    patient.close()
  })

  it('is given up when it hangs', async () => {
    const controller = new AbortController()
    const hanging = logIn('hangs', controller.signal)
    const behind = logIn('ann')
    controller.abort()
    expect(await hanging).toBe('not-verified timeout')
    expect(await behind).toBe('not-verified unknown')
    expect(await logIn('ann')).toBe('accepted')
  })

  it('prints nothing', async () => {
    const written = [process.stdout, process.stderr].map((stream) => vi.spyOn(stream, 'write'))
    await logIn('ann')
    await logIn('ann')
    for (const write of written) expect(write.mock.calls.flat().join()).not.toContain('the thread')
    vi.restoreAllMocks()
  })

  it('keeps no process from ending, and is kept by a login', async () => {
    await logIn('ann')
    await until(() => ports() === 0)
    const waiting = logIn('waits')
    expect(ports()).toBeGreaterThan(0)
    thread.close()
    await waiting
    await until(() => ports() === 0)
  })

  it('that cannot even start is a client that broke', async () => {
    const missing = createSmfThread({ entry: new URL('../helpers/no-such-entry.ts', import.meta.url) })
    expect(short(await missing.logIn(request('ann'), new AbortController().signal))).toBe('not-verified unknown')
    missing.close()
  })
})

describe('solclientjs', () => {
  const probe = (load: () => Promise<Solclient>) =>
    createSmfLogin({ client: createSmfClient(load) }).probe(targetOf('smf', 1), GOOD, { timeoutMs: 10_000 })

  it.each([
    ['is not installed', () => Promise.reject(new Error("Cannot find package 'solclientjs'"))],
    ['is broken', () => Promise.resolve({} as Solclient)],
    ['throws when it is loaded', () => Promise.reject(null)],
  ])('%s', async (_sentence, load) => {
    expect(await probe(load)).toEqual({
      outcome: 'not-verified',
      reason: 'client-not-installed',
      detail: 'The optional package solclientjs is not installed, or it cannot be loaded.',
    })
  })

  it('is looked for again, and not waited for beyond the deadline', async () => {
    let loads = 0
    const login = createSmfLogin({
      client: createSmfClient(async () => {
        loads += 1
        if (loads === 1) throw new Error('not yet')
        return new Promise<Solclient>(() => {})
      }),
    })
    expect(short(await login.probe(targetOf('smf', 1), GOOD, { timeoutMs: 10_000 }))).toBe(
      'not-verified client-not-installed',
    )
    expect(short(await login.probe(targetOf('smf', 1), GOOD, { timeoutMs: 50 }))).toBe('not-verified timeout')
    await until(() => loads === 2)
  })
})
