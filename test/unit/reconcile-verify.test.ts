import { describe, expect, it } from 'vitest'
import type { Protocol } from '../../src/domain/catalogue.ts'
import { consumerKey } from '../../src/domain/ids.ts'
import { notVerified, type Verdict } from '../../src/domain/verdict.ts'
import { longestAgo } from '../../src/reconcile/login-rotation.ts'
import type { LoginRecord } from '../../src/reconcile/store-port.ts'
import { loginsOutcome } from '../../src/reconcile/verify.ts'
import { FakeVerifier, REJECTED } from '../helpers/fake-verifier.ts'
import { type MemoryWorld, worldOf } from '../helpers/memory-world.ts'
import { accessRequest, credential, DAY_MS, PAIR, registrationOf } from '../helpers/sample.ts'

const KEY = 'key-of-parcel-app'
const ACCEPTED: Verdict = { outcome: 'accepted' }

const direct = (version = 1) =>
  registrationOf(PAIR, { accessRequests: [accessRequest('request-1')], credentials: [credential(KEY, version)] })

function verifiedWorld(exposed: readonly Protocol[] = ['mqtt', 'smf']) {
  const world = worldOf(direct())
  const verifier = new FakeVerifier(world.broker, exposed, () => world.nowMs)
  return { world, verifier, run: () => world.run(PAIR, { verifier }) }
}

const passwordWrites = (world: MemoryWorld): number =>
  world.broker.writes.filter(({ withPassword }) => withPassword === true).length

const lastRun = (world: MemoryWorld) => world.store.runs.at(-1)?.run

describe('after an apply', () => {
  it('each credential logs in over each protocol that the broker exposes', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt', 'smf', 'amqp'])
    await run()
    expect(verifier.attempts.map(({ protocol }) => protocol)).toEqual(['mqtt', 'smf', 'amqp'])
    expect(await world.store.logins(PAIR)).toHaveLength(3)
    expect(lastRun(world)).toMatchObject({ state: 'in-sync', reachedGeneration: 1 })
  })

  it('a run that writes nothing proves nothing twice', async () => {
    const { verifier, run } = verifiedWorld()
    await run()
    await run()
    expect(verifier.attempts).toHaveLength(2)
  })

  it('a run that writes nothing proves what was never proved', async () => {
    const { verifier, run } = verifiedWorld(['mqtt'])
    await run()
    verifier.exposed = ['mqtt', 'https']
    await run()
    expect(verifier.attempts.map(({ protocol }) => protocol)).toEqual(['mqtt', 'https'])
  })

  it('a login that proves nothing writes nothing and holds nothing back', async () => {
    const { world, verifier, run } = verifiedWorld()
    verifier.answers.set('mqtt', notVerified('refused', 'ECONNREFUSED'))
    verifier.answers.set('smf', notVerified('timeout', 'no answer'))
    await run()
    expect(lastRun(world)).toMatchObject({ state: 'in-sync', error: null, reachedGeneration: 1, dueAtMs: null })
    expect(world.store.ledger(PAIR).find(({ object }) => object.name === KEY)?.refusedLogin).toBeUndefined()
  })

  it('a failed apply is not proved', async () => {
    const { world, verifier, run } = verifiedWorld()
    world.broker.failNext({ error: new Error('broken'), on: 'create' })
    await expect(run()).rejects.toThrow('broken')
    expect(verifier.attempts).toEqual([])
  })

  it('logins that cannot be made are a failed run, with what was written on record', async () => {
    const { world, verifier } = verifiedWorld()
    const broken = Object.assign(verifier, { prove: () => Promise.reject(new Error('the database is gone')) })
    await expect(world.run(PAIR, { verifier: broken })).rejects.toThrow('the database is gone')
    expect(lastRun(world)).toMatchObject({ state: 'error', reachedGeneration: null })
    expect(lastRun(world)?.confirmations.length).toBeGreaterThan(0)
  })
})

describe('a login that the broker refuses', () => {
  it('has its password written again, and is on record as drift with both verdicts', async () => {
    const { world, verifier, run } = verifiedWorld()
    await run()
    world.broker.passwords.set(KEY, 'somebody-changed-it')
    // What a sweep does: one login of the credential, and its verdict on record.
    const [refused] = await verifier.prove(PAIR, [await proof(world)])
    await world.store.recordLogins(refused === undefined ? [] : [{ pair: PAIR, login: refused }])
    const before = passwordWrites(world)
    await run()
    expect(passwordWrites(world) - before).toBe(1)
    expect(lastRun(world)).toMatchObject({
      state: 'in-sync',
      drift: [
        {
          action: 'repaired',
          drift: {
            kind: 'password',
            before: { 'login over mqtt': 'rejected: wrong password' },
            after: { 'login over mqtt': 'accepted', 'login over smf': 'accepted' },
          },
        },
      ],
    })
    expect(world.store.ledger(PAIR).find(({ object }) => object.name === KEY)?.refusedLogin).toBeUndefined()
  })

  it('has it written once more, never twice, and then asks for a person', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt'])
    verifier.answers.set('mqtt', REJECTED)
    const outcome = await run()
    expect(outcome).toMatchObject({ status: 'done', proof: { result: 'refused' } })
    expect(world.store.runs.map(({ run: each }) => each.state)).toEqual(['lagging', 'error'])
    expect(lastRun(world)).toMatchObject({
      error: { code: 'LOGIN_REFUSED', fate: 'stop' },
      reachedGeneration: 1,
      dueAtMs: Number.POSITIVE_INFINITY,
      drift: [{ action: 'failed', drift: { kind: 'password' } }],
    })
    const written = passwordWrites(world)
    await run()
    await run()
    expect(passwordWrites(world)).toBe(written)
    expect(lastRun(world)?.state).toBe('error')
  })

  it('is tried again by later runs, which end the error when the broker takes it', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt'])
    verifier.answers.set('mqtt', REJECTED)
    await run()
    verifier.answers.delete('mqtt')
    await run()
    expect(lastRun(world)).toMatchObject({ state: 'in-sync', error: null })
    // A later refusal of the same version has its own repair.
    world.broker.passwords.set(KEY, 'somebody-changed-it')
    const [refused] = await verifier.prove(PAIR, [await proof(world)])
    await world.store.recordLogins(refused === undefined ? [] : [{ pair: PAIR, login: refused }])
    await run()
    expect(lastRun(world)?.drift).toMatchObject([{ action: 'repaired' }])
  })

  it('with a newer version gets its own repair', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt'])
    verifier.answers.set('mqtt', REJECTED)
    await run()
    world.store.put(PAIR, { registration: direct(2) })
    const written = passwordWrites(world)
    await run()
    // The new version, and that once more.
    expect(passwordWrites(world) - written).toBe(2)
  })

  it('over one protocol while another takes the same password is not repaired by writing it', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt', 'amqp'])
    verifier.answers.set('amqp', REJECTED)
    const outcome = await run()
    expect(outcome).toMatchObject({ proof: { result: 'refused' } })
    expect(world.store.runs).toHaveLength(1)
    expect(lastRun(world)?.reason).toContain('accepts the same password over mqtt')
    const written = passwordWrites(world)
    await run()
    await world.sweep({ verifier })
    expect(passwordWrites(world)).toBe(written)
    expect(lastRun(world)?.reason).toContain('accepts the same password over mqtt')
  })

  it('is a sweep’s finding and a sweep’s repair', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt'])
    await run()
    world.broker.passwords.set(KEY, 'somebody-changed-it')
    expect(await world.sweep({ verifier })).toMatchObject({ loginsProbed: 0, changed: 0 })
    world.nowMs += DAY_MS
    expect(await world.sweep({ verifier })).toMatchObject({ loginsProbed: 1, loginsRefused: 1, changed: 1 })
    expect(lastRun(world)).toMatchObject({ state: 'in-sync', drift: [{ drift: { kind: 'password' } }] })
    world.nowMs += DAY_MS
    expect(await world.sweep({ verifier })).toMatchObject({ loginsProbed: 1, loginsRefused: 0, changed: 0 })
  })

  it('on record from a process that died is repaired by the next sweep', async () => {
    const { world, verifier, run } = verifiedWorld(['mqtt'])
    await run()
    world.broker.passwords.set(KEY, 'somebody-changed-it')
    const [refused] = await verifier.prove(PAIR, [await proof(world)])
    await world.store.recordLogins(refused === undefined ? [] : [{ pair: PAIR, login: refused }])
    expect(await world.sweep({ verifier })).toMatchObject({ changed: 1 })
    expect(lastRun(world)?.state).toBe('in-sync')
  })

  it('of a client that somebody shut down a moment ago is looked at again soon', async () => {
    const { world, verifier, run } = verifiedWorld(['smf'])
    verifier.answers.set('smf', { outcome: 'disabled', detail: 'Client Username Is Shutdown' })
    await run()
    expect(lastRun(world)).toMatchObject({ state: 'error', error: { code: 'LOGIN_DISABLED', fate: 'retry' } })
    expect(lastRun(world)?.dueAtMs).toBe(world.nowMs + 60_000)
  })
})

async function proof(world: MemoryWorld) {
  const stored = await world.store.secret(PAIR, consumerKey(KEY))
  if (stored === null) throw new Error('the credential has no secret')
  return { consumerKey: consumerKey(KEY), version: stored.version, secret: stored.secret, protocols: ['mqtt'] as const }
}

describe('what logins come to', () => {
  const login = (protocol: Protocol, verdict: Verdict): LoginRecord => ({
    consumerKey: consumerKey(KEY),
    protocol,
    credentialVersion: 1,
    verdict,
    checkedAtMs: 0,
  })
  const denied: Verdict = { outcome: 'denied', detail: 'Publish ACL Denied' }
  const down: Verdict = { outcome: 'vpn-down', detail: '' }
  const unknown: Verdict = { outcome: 'vpn-unknown', detail: '' }
  const busy: Verdict = { outcome: 'busy', detail: '' }
  const disabled: Verdict = { outcome: 'disabled', detail: '' }

  it.each<[string, readonly Verdict[], boolean, string]>([
    ['nothing was tried', [], false, 'good'],
    ['all were accepted', [ACCEPTED, ACCEPTED], false, 'good'],
    ['a denied topic is a good login', [denied], false, 'good'],
    ['a message VPN that is down says nothing of a password', [down, unknown, busy], false, 'good'],
    ['what was not verified says nothing', [notVerified('dns', ''), notVerified('tls-expired', '')], false, 'good'],
    ['refused', [REJECTED], false, 'reapply'],
    ['refused after it was written again', [REJECTED], true, 'refused'],
    ['refused beside what was not verified', [notVerified('timeout', ''), REJECTED], false, 'reapply'],
    ['refused beside accepted', [ACCEPTED, REJECTED], false, 'refused'],
    ['refused beside denied', [REJECTED, denied], false, 'refused'],
    ['disabled', [ACCEPTED, disabled], false, 'disabled'],
    ['refused and disabled', [disabled, REJECTED], false, 'reapply'],
  ])('%s', (_, verdicts, reapplied, result) => {
    const logins = verdicts.map((verdict, index) => login((['mqtt', 'smf', 'amqp'] as const)[index] ?? 'http', verdict))
    expect(loginsOutcome(logins, () => reapplied)).toMatchObject({ result })
  })
})

describe('the protocol whose turn it is', () => {
  it.each<[string, Partial<Record<Protocol, number>>, Protocol]>([
    ['the first when none was tried', {}, 'smf'],
    ['one that was never tried', { smf: 3, amqp: 2 }, 'mqtt'],
    ['the one that waited longest', { smf: 3, amqp: 1, mqtt: 2 }, 'amqp'],
  ])('is %s', (_, checkedAtMs, expected) => {
    expect(longestAgo(['smf', 'amqp', 'mqtt'], checkedAtMs)).toBe(expected)
  })
})
