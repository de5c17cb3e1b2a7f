import { describe, expect, it } from 'vitest'
import { PROTOCOLS, type Protocol } from '../../src/domain/catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { Verdict } from '../../src/domain/verdict.ts'
import { createLoginClients } from '../../src/login/login-clients.ts'
import type { LoginPort, LoginTarget, ProbeLimits } from '../../src/reconcile/login-port.ts'
import { refusedPort } from '../helpers/hostile-server.ts'

const PASSWORD = 'corr3ct-horse'
const ACCEPTED: Verdict = { outcome: 'accepted' }
const target = (protocol: Protocol, port = 1): LoginTarget => ({
  protocol,
  host: '127.0.0.1',
  port,
  msgVpnName: 'vpn',
})

/** All eleven protocols by one client that remembers what it was asked. */
function clientsWith(probe: LoginPort['probe']) {
  const asked: Parameters<LoginPort['probe']>[] = []
  const port: LoginPort = {
    probe: (...args) => {
      asked.push(args)
      return probe(...args)
    },
  }
  const clients = createLoginClients(Object.fromEntries(PROTOCOLS.map((protocol) => [protocol, port])))
  const ask = (username: string, password: string, limits: ProbeLimits = { timeoutMs: 60_000 }) =>
    clients.probe(target('amqp'), { username, password: new Secret(password) }, limits)
  return { asked, ask }
}

describe('the login clients', () => {
  it('know every protocol, and end each with nothing open', async () => {
    const clients = createLoginClients()
    const port = await refusedPort()
    try {
      for (const protocol of PROTOCOLS) {
        const attempt = { username: 'alice', password: new Secret(PASSWORD) }
        const verdict = await clients.probe(target(protocol, port), attempt, { timeoutMs: 20_000 })
        const reason = verdict.outcome === 'not-verified' ? verdict.reason : verdict.outcome
        // The library of SMF is optional.
        expect(['refused', 'client-not-installed'], protocol).toContain(reason)
        if (!protocol.startsWith('smf')) expect(reason).toBe('refused')
      }
    } finally {
      await clients.close()
    }
    await clients.close()
  })

  it('hand on what they were given, and the verdict as it is', async () => {
    const { asked, ask } = clientsWith(async () => ACCEPTED)
    const limits = { timeoutMs: 60_000 }
    expect(await ask('alice', PASSWORD, limits)).toBe(ACCEPTED)
    expect(asked).toHaveLength(1)
    expect(asked[0]?.[0]).toEqual(target('amqp'))
    expect(asked[0]?.[2]).toBe(limits)
  })

  it.each([
    ['an empty username', '', PASSWORD],
    ['an empty password', 'alice', ''],
    ['a username of 190 characters', 'a'.repeat(190), PASSWORD],
    ['a password of 129 characters', 'alice', 'x'.repeat(129)],
    ['a password with an accent', 'alice', 'pässword'],
    ['a password with a line break', 'alice', 'pass\nword'],
    ['a password that ends in a line break', 'alice', 'password\n'],
    ['a username with a NUL', 'ali\0ce', PASSWORD],
  ])('do not send %s', async (_sentence, username, password) => {
    const { asked, ask } = clientsWith(async () => ACCEPTED)
    const verdict = await ask(username, password)
    expect(verdict).toMatchObject({ outcome: 'not-verified', reason: 'bad-input' })
    if (password !== '') expect(JSON.stringify(verdict)).not.toContain(JSON.stringify(password).slice(1, -1))
    expect(asked).toEqual([])
  })

  it('send what is as long as it may be', async () => {
    const { ask } = clientsWith(async () => ACCEPTED)
    expect(await ask('a'.repeat(189), '~'.repeat(128))).toBe(ACCEPTED)
    expect(await ask(' ', '!')).toBe(ACCEPTED)
  })

  const named = Object.assign(new TypeError(`bad ${PASSWORD}`), { name: PASSWORD })
  it.each([
    ['rejects', async () => Promise.reject(named), 'The client failed with TypeError.'],
    [
      'throws',
      (): Promise<Verdict> => {
        throw new RangeError(PASSWORD)
      },
      'The client failed with RangeError.',
    ],
    ['rejects with text', async () => Promise.reject(PASSWORD), 'The client failed with what is no error.'],
  ])('say of a client that %s its class and no more', async (_sentence, probe, detail) => {
    const { ask } = clientsWith(probe)
    expect(await ask('alice', PASSWORD)).toEqual({ outcome: 'not-verified', reason: 'unknown', detail })
  })

  it('give up a client that hangs, at its deadline and when it is aborted', async () => {
    const { ask } = clientsWith(() => new Promise<Verdict>(() => {}))
    const timedOut = { outcome: 'not-verified', reason: 'timeout' }
    expect(await ask('alice', PASSWORD, { timeoutMs: 20 })).toMatchObject(timedOut)
    const controller = new AbortController()
    const aborted = ask('alice', PASSWORD, { timeoutMs: 600_000, signal: controller.signal })
    controller.abort()
    expect(await aborted).toMatchObject(timedOut)
    expect(await ask('alice', PASSWORD, { timeoutMs: 600_000, signal: AbortSignal.abort() })).toMatchObject(timedOut)
  })

  it('leave the last word to a client that ends a little late', async () => {
    const { ask } = clientsWith(async (_target, _attempt, { timeoutMs }) => {
      await new Promise((resolve) => setTimeout(resolve, timeoutMs + 20))
      return { outcome: 'busy', detail: 'late' }
    })
    expect(await ask('alice', PASSWORD, { timeoutMs: 10 })).toMatchObject({ outcome: 'busy' })
  })

  it('keep no timer and no listener of a probe that has ended', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const { ask } = clientsWith(async () => ACCEPTED)
    const before = timers()
    const { signal } = new AbortController()
    for (let round = 0; round < 50; round += 1) await ask('alice', PASSWORD, { timeoutMs: 600_000, signal })
    expect(timers()).toBe(before)
  })
})
