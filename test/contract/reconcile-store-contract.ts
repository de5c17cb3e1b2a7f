import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ObjectRef, objectKey } from '../../src/domain/broker-object.ts'
import type { Protocol } from '../../src/domain/catalogue.ts'
import type { Fate } from '../../src/domain/errors.ts'
import { consumerKey, type RegistrationId, runId } from '../../src/domain/ids.ts'
import type { LedgerEntry } from '../../src/reconcile/ledger.ts'
import type { RegistrationFacts } from '../../src/reconcile/plan-registration.ts'
import type { Confirmation, FinishedRun, Intent, Lease, Pair, ReconcileStore } from '../../src/reconcile/store-port.ts'
import type { SweepStore } from '../../src/reconcile/sweep-port.ts'
import { HOUR_MS, pairOf } from '../helpers/sample.ts'

/** A store behind its ports, and the hands of those who change it. */
export interface StoreSubject extends AsyncDisposable {
  readonly store: ReconcileStore
  readonly sweepStore: SweepStore
  /** A registration with a direct access request for the broker, and credentials by consumer key and version. */
  addPair(pair: Pair, credentials?: Readonly<Record<string, number>>): Promise<void>
  /** A change that reaches the registration. */
  raiseGeneration(pair: Pair): Promise<void>
  /** Nothing ties the registration to the broker any more. */
  withdraw(pair: Pair): Promise<void>
  requestPassword(pair: Pair, key: string): Promise<void>
  expireLease(pair: Pair): Promise<void>
  /** How long the lease still runs; negative when it has run out. */
  leaseEndsInMs(pair: Pair): Promise<number>
  lagging(): Promise<readonly Pair[]>
  /** Of the access request that ties the registration to the broker, which is named by its id. */
  requestState(pair: Pair): Promise<{ readonly state: string; readonly reason: string | null }>
}

/** What a subject stores as the secret of a credential. */
export const secretOf = (pair: Pair, key: string, version: number): string => `${pair.accountId}/${key}/v${version}`

const TTL_MS = 60_000
const A = pairOf('app-a')
const B = pairOf('app-b')
const FOREIGN = pairOf('app-a', 'broker1', 'globex')
const ACL: ObjectRef = { kind: 'aclProfile', name: 'app-a' }
const USER: ObjectRef = { kind: 'clientUsername', name: 'key-a' }
const PROFILE: ObjectRef = { kind: 'clientProfile', name: 'keymesh-direct' }
const intent = (object: ObjectRef, origin: Intent['origin'] = 'created'): Intent => ({
  object,
  shared: object.kind === 'clientProfile',
  origin,
})
const APPLIED = { attributes: { enabled: true, owner: 'x', maxTtl: 7 }, members: { subscriptions: ['a/b', 'c'] } }
const confirmation = (object: ObjectRef, content: Partial<Confirmation> = {}): Confirmation => ({
  object,
  applied: APPLIED,
  credentialVersion: null,
  passwordWritten: false,
  passwordReapplied: false,
  ...content,
})

let runs = 0
function runOf(content: Partial<FinishedRun> = {}): FinishedRun {
  runs += 1
  return {
    runId: runId(`run-${runs}`),
    trigger: 'on-demand',
    startedAtMs: Date.now() - 5,
    finishedAtMs: Date.now(),
    generation: null,
    state: 'in-sync',
    reason: null,
    error: null,
    reachedGeneration: null,
    dueAtMs: null,
    stepsRun: 0,
    stepsHeld: 0,
    detail: { ran: [], held: [] },
    confirmations: [],
    ledgerChanges: { forget: [], withdraw: [], restore: [] },
    drift: [],
    logins: [],
    ...content,
  }
}

/** The promises of ReconcileStore and SweepStore; every implementation keeps them. */
export function reconcileStoreContract(name: string, makeSubject: () => Promise<StoreSubject>): void {
  describe(`${name} keeps the promises of the reconcile store`, () => {
    let subject: StoreSubject
    let store: ReconcileStore
    beforeEach(async () => {
      subject = await makeSubject()
      store = subject.store
      await subject.addPair(A, { 'key-a': 1 })
    })
    afterEach(() => subject[Symbol.asyncDispose]())

    const lease = async (pair: Pair, holder = 'worker-1'): Promise<Lease> => {
      const got = await store.acquire(pair, holder, TTL_MS)
      if (got === null) throw new Error('the pair is held')
      return got
    }
    const facts = async (pair: Pair): Promise<RegistrationFacts> => {
      const found = await store.facts(pair)
      if (found === null) throw new Error('no facts')
      return found
    }
    const generation = async (pair: Pair): Promise<number> => (await facts(pair)).registration.generation
    const ledger = async (pair: Pair): Promise<Readonly<Record<string, LedgerEntry>>> =>
      Object.fromEntries((await facts(pair)).ledger.map((entry) => [objectKey(entry.object), entry]))
    const finish = async (pair: Pair, content: Partial<FinishedRun> = {}): Promise<void> => {
      expect(await store.finish(await lease(pair), runOf(content))).toBe(true)
    }
    const settle = async (pair: Pair, content: Partial<FinishedRun> = {}): Promise<void> => {
      const reachedGeneration = await generation(pair)
      await finish(pair, { generation: reachedGeneration, reachedGeneration, ...content })
    }
    const record = async (pair: Pair, intents: readonly Intent[], content: Partial<FinishedRun> = {}) => {
      const held = await lease(pair)
      await store.intend(held, intents)
      expect(await store.finish(held, runOf(content))).toBe(true)
    }

    describe('leases', () => {
      it('has one holder at a time and knows its tokens apart', async () => {
        const first = await lease(A)
        expect(await store.acquire(A, 'worker-2', TTL_MS)).toBeNull()
        expect(await store.acquire(A, 'worker-1', TTL_MS)).toBeNull()
        expect(await store.finish(first, runOf())).toBe(true)
        const second = await lease(A, 'worker-2')
        expect(second).toMatchObject({ pair: A, holder: 'worker-2' })
        expect(second.token).toBeGreaterThan(first.token)
      })

      it('gives a pair that many ask for at once to one of them', async () => {
        await subject.addPair(B)
        const asked = [A, A, B, A, B].map((pair, index) => store.acquire(pair, `worker-${index}`, TTL_MS))
        const got = (await Promise.all(asked)).filter((each) => each !== null)
        expect(got.map(({ pair }) => pair.registrationId).sort()).toEqual(['app-a', 'app-b'])
      })

      it('gives nothing for a pair that the store does not know', async () => {
        expect(await store.acquire(pairOf('nobody'), 'worker-1', TTL_MS)).toBeNull()
        expect(await store.facts(pairOf('nobody'))).toBeNull()
      })

      it('passes a lease that ran out to the next; the former holder can do nothing more', async () => {
        const former = await lease(A)
        await subject.expireLease(A)
        const now = await generation(A)
        expect(await store.mayWrite(former, now, TTL_MS)).toBe(false)
        await store.intend(former, [intent(ACL)])
        const next = await lease(A, 'worker-2')
        expect(await store.mayWrite(former, now, TTL_MS)).toBe(false)
        await store.intend(former, [intent(USER)])
        expect(await store.finish(former, runOf({ state: 'error', reason: 'late', reachedGeneration: now }))).toBe(
          false,
        )
        expect(await ledger(A)).toEqual({})
        expect(await subject.lagging()).toEqual([A])
        expect(await store.mayWrite(next, now, TTL_MS)).toBe(true)
      })

      it('ends with the run: a second end, or a write after it, is refused', async () => {
        const held = await lease(A)
        expect(await store.finish(held, runOf())).toBe(true)
        expect(await store.finish(held, runOf({ state: 'error' }))).toBe(false)
        expect(await store.mayWrite(held, await generation(A), TTL_MS)).toBe(false)
        await store.intend(held, [intent(ACL)])
        expect(await ledger(A)).toEqual({})
      })

      it('lets a holder write only while the generation is the one it planned for', async () => {
        const held = await lease(A)
        const before = await generation(A)
        expect(await store.mayWrite(held, before, TTL_MS)).toBe(true)
        await subject.raiseGeneration(A)
        expect(await store.mayWrite(held, before, TTL_MS)).toBe(false)
        expect(await store.mayWrite(held, before + 1, TTL_MS)).toBe(true)
      })

      it('renews the lease of a holder at work', async () => {
        const held = await lease(A)
        const longer = 3 * TTL_MS
        expect(await store.mayWrite(held, await generation(A), longer)).toBe(true)
        expect(await subject.leaseEndsInMs(A)).toBeGreaterThan(longer - 10_000)
      })

      it('checks many at once, each for itself', async () => {
        await subject.addPair(B)
        const [a, b] = [await lease(A), await lease(B)]
        await subject.expireLease(B)
        const checks = [a, b, { ...a, token: a.token + 1 }].map((each) => store.mayWrite(each, 1, TTL_MS))
        expect(await Promise.all(checks)).toEqual([true, false, false])
      })
    })

    describe('facts', () => {
      it('tell what the registration needs on this broker', async () => {
        const { registration, brokerId, policy, ledger, withdrawalConfirmed } = await facts(A)
        expect(brokerId).toBe(A.brokerId)
        expect(policy).toMatchObject({ mode: 'full', adopt: 'never' })
        expect({ ledger, withdrawalConfirmed }).toEqual({ ledger: [], withdrawalConfirmed: false })
        expect(registration).toMatchObject({
          accountId: 'acme',
          registrationId: 'app-a',
          generation: 1,
          accessRequests: [
            {
              classOfServicePolicy: { messageDeliveryMode: 'direct' },
              eventApis: [{ id: 'parcels', channels: [{ name: 'parcel/{id}/scanned' }] }],
            },
          ],
          credentials: [{ consumerKey: 'key-a', version: 1 }],
        })
      })

      it('are null for a broker that the registration has nothing to do with', async () => {
        expect(await store.facts(pairOf('app-a', 'broker2'))).toBeNull()
      })

      it('are the same for two who ask for one pair at once', async () => {
        await record(A, [intent({ kind: 'aclProfile', name: 'app-a' })])
        const alone = await facts(A)
        expect(await Promise.all([facts(A), facts(A)])).toEqual([alone, alone])
        expect(alone.registration.accessRequests).toHaveLength(1)
      })

      it('count what is being withdrawn from the broker only for those who leave', async () => {
        for (const pair of [A, B]) {
          if (pair === B) await subject.addPair(B)
          await record(pair, [intent({ kind: 'aclProfile', name: pair.registrationId })])
        }
        await subject.withdraw(A)
        expect(await facts(A)).toMatchObject({
          registration: { accessRequests: [] },
          registrationsOnBroker: 2,
          withdrawnOnBroker: 1,
        })
        expect(await facts(B)).toMatchObject({ registrationsOnBroker: 0, withdrawnOnBroker: 0 })
      })
    })

    describe('the ledger', () => {
      it('keeps an intent without a state; a shared one belongs to nobody and is seen by all', async () => {
        await subject.addPair(B)
        await record(A, [intent(ACL), intent(PROFILE), intent(USER, 'adopted')])
        const empty = { applied: null, confirmedCredentialVersion: null, passwordDue: false, withdrawnAtMs: null }
        expect(await ledger(A)).toEqual({
          'aclProfile/app-a': { object: ACL, registrationId: 'app-a', origin: 'created', ...empty },
          'clientUsername/key-a': { object: USER, registrationId: 'app-a', origin: 'adopted', ...empty },
          'clientProfile/keymesh-direct': { object: PROFILE, registrationId: null, origin: 'created', ...empty },
        })
        expect(Object.keys(await ledger(B))).toEqual(['clientProfile/keymesh-direct'])
      })

      it('takes the same intent of several at once', async () => {
        await subject.addPair(B)
        const leases = [await lease(A), await lease(B)]
        await Promise.all(leases.map((held) => store.intend(held, [intent(PROFILE)])))
        expect(Object.keys(await ledger(B))).toEqual(['clientProfile/keymesh-direct'])
      })

      it('keeps an intent of one that holds its lease when another that lost its own intends the same', async () => {
        await subject.addPair(B)
        const [a, b] = [await lease(A), await lease(B)]
        await subject.expireLease(B)
        await Promise.all([store.intend(a, [intent(PROFILE)]), store.intend(b, [intent(PROFILE)])])
        expect(Object.keys(await ledger(A))).toEqual(['clientProfile/keymesh-direct'])
      })

      describe('of a credential that moved to another registration', () => {
        const nothing = { forget: [], withdraw: [], restore: [] }
        const confirmed = { confirmations: [confirmation(USER, { credentialVersion: 1, passwordWritten: true })] }
        const ours = async (pair: Pair) => (await ledger(pair))[objectKey(USER)]
        beforeEach(async () => {
          await subject.addPair(B, { 'key-b': 1 })
          await record(A, [intent(USER), intent(ACL)], confirmed)
        })

        it('is taken over with its object, as one that is only intended', async () => {
          const held = await lease(B)
          expect(await store.intend(held, [intent(USER), intent(PROFILE)])).toEqual([USER])
          expect(await store.intend(held, [intent(USER)])).toEqual([])
          expect(await ours(A)).toBeUndefined()
          expect(await ours(B)).toMatchObject({ applied: null, confirmedCredentialVersion: null })
        })

        it('is not taken over while a run of the one that had it may still write', async () => {
          const former = await lease(A)
          const held = await lease(B, 'worker-2')
          await expect(store.intend(held, [intent(USER)])).rejects.toMatchObject({ code: 'SUPERSEDED', fate: 'retry' })
          expect(await ours(A)).toMatchObject({ confirmedCredentialVersion: 1 })
          expect(await ours(B)).toBeUndefined()
          await store.finish(former, runOf())
          expect(await store.intend(held, [intent(USER)])).toEqual([USER])
        })

        it.each([
          ['forgets', { ledgerChanges: { ...nothing, forget: [USER] } }],
          ['withdraws', { ledgerChanges: { ...nothing, withdraw: [USER] } }],
          ['confirms', confirmed],
        ])('stays as it is when a late run of the one that had it %s its object', async (_change, content) => {
          const former = await lease(A)
          await subject.expireLease(A)
          await store.intend(await lease(B, 'worker-2'), [intent(USER)])
          expect(await store.finish(former, runOf(content))).toBe(true)
          expect(await ours(B)).toMatchObject({
            applied: null,
            confirmedCredentialVersion: null,
            withdrawnAtMs: null,
          })
        })
      })

      it('confirms a state and a version, and leaves a confirmed row alone when it is intended again', async () => {
        const confirmed = confirmation(USER, { credentialVersion: 3, passwordWritten: true })
        await record(A, [intent(USER), intent(PROFILE)], { confirmations: [confirmed, confirmation(PROFILE)] })
        await record(A, [intent(USER), intent(PROFILE)])
        expect(await ledger(A)).toMatchObject({
          'clientUsername/key-a': { applied: APPLIED, confirmedCredentialVersion: 3 },
          'clientProfile/keymesh-direct': { applied: APPLIED, confirmedCredentialVersion: null, registrationId: null },
        })
      })

      it('gives a row to the registration that creates its object after it was seen absent', async () => {
        await subject.addPair(B)
        await record(A, [intent(USER)], { confirmations: [confirmation(USER, { credentialVersion: 3 })] })
        await record(B, [intent(USER)])
        expect(await ledger(A)).toEqual({})
        expect(await ledger(B)).toMatchObject({
          'clientUsername/key-a': { registrationId: 'app-b', applied: null, confirmedCredentialVersion: null },
        })
      })

      it('forgets, withdraws and restores', async () => {
        const at = Date.now() - HOUR_MS
        await record(A, [intent(ACL), intent(USER)])
        await finish(A, { finishedAtMs: at, ledgerChanges: { forget: [ACL], withdraw: [USER], restore: [] } })
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { withdrawnAtMs: at } })
        expect(Object.keys(await ledger(A))).toHaveLength(1)
        await finish(A, { ledgerChanges: { forget: [], withdraw: [], restore: [USER] } })
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { withdrawnAtMs: null } })
      })

      it('remembers that a password is asked for until it was written', async () => {
        await record(A, [intent(USER)])
        await subject.requestPassword(A, 'key-a')
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { passwordDue: true } })
        await finish(A, { confirmations: [confirmation(USER, { credentialVersion: 1 })] })
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { passwordDue: true } })
        await finish(A, { confirmations: [confirmation(USER, { credentialVersion: 1, passwordWritten: true })] })
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { passwordDue: false } })
      })
    })

    describe('writes that were sent without a lease', () => {
      const written = confirmation(USER, { credentialVersion: 1, passwordWritten: true })

      it('make the pair lag, and the password due that was among them', async () => {
        await record(A, [intent(ACL), intent(USER)], { confirmations: [confirmation(ACL), written] })
        await settle(A)
        const before = await generation(A)
        await store.distrust(A, [ACL, USER])
        expect(await generation(A)).toBe(before + 1)
        expect(await subject.lagging()).toEqual([A])
        expect(await ledger(A)).toMatchObject({
          'aclProfile/app-a': { passwordDue: false },
          'clientUsername/key-a': { passwordDue: true },
        })
      })

      it('leave the password due after a run that had begun before, and not after the next', async () => {
        await record(A, [intent(USER)], { confirmations: [written] })
        const begun = await lease(A)
        const before = await generation(A)
        await store.distrust(A, [USER])
        const run = runOf({ generation: before, reachedGeneration: before, confirmations: [written] })
        expect(await store.finish(begun, run)).toBe(true)
        expect(await subject.lagging()).toEqual([A])
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { passwordDue: true } })
        await settle(A, { confirmations: [written] })
        expect(await subject.lagging()).toEqual([])
        expect(await ledger(A)).toMatchObject({ 'clientUsername/key-a': { passwordDue: false } })
      })
    })

    describe('secrets', () => {
      it('are those of the registration, with their version', async () => {
        await subject.addPair(B, { 'key-b': 7 })
        const found = await store.secret(B, consumerKey('key-b'))
        expect(found?.version).toBe(7)
        expect(found?.secret.reveal()).toBe(secretOf(B, 'key-b', 7))
        expect(await store.secret(B, consumerKey('key-a'))).toBeNull()
        expect(await store.secret(B, consumerKey('nobody'))).toBeNull()
      })

      it('are read many at once, each for itself', async () => {
        await subject.addPair(B, { 'key-b': 7 })
        const asked: readonly (readonly [Pair, string])[] = [
          [A, 'key-a'],
          [B, 'key-b'],
          [A, 'key-b'],
          [A, 'key-a'],
        ]
        const found = await Promise.all(asked.map(([pair, key]) => store.secret(pair, consumerKey(key))))
        expect(found.map((each) => each?.secret.reveal() ?? null)).toEqual([
          secretOf(A, 'key-a', 1),
          secretOf(B, 'key-b', 7),
          null,
          secretOf(A, 'key-a', 1),
        ])
      })
    })

    describe('pairs', () => {
      it('lag until their generation is reached', async () => {
        expect(await subject.lagging()).toEqual([A])
        await settle(A)
        expect(await subject.lagging()).toEqual([])
        await subject.raiseGeneration(A)
        expect(await subject.lagging()).toEqual([A])
      })

      const pauses: Readonly<Record<string, readonly [Partial<FinishedRun>, boolean]>> = {
        'in sync and due later': [{ dueAtMs: Date.now() + HOUR_MS }, false],
        'in sync and due': [{ dueAtMs: Date.now() - 1000 }, true],
        'in error, to be tried later': [
          { state: 'error', reachedGeneration: null, dueAtMs: Date.now() + HOUR_MS },
          false,
        ],
        'in error for good': [{ state: 'error', reachedGeneration: null, dueAtMs: Number.POSITIVE_INFINITY }, false],
        'in error, to be tried now': [{ state: 'error', reachedGeneration: null, dueAtMs: Date.now() - 1000 }, true],
        'not reached and not put off': [{ state: 'lagging', reachedGeneration: null }, true],
      }
      it.each(Object.entries(pauses))('are looked at when they are due: %s', async (_, [content, due]) => {
        await settle(A, content)
        expect(await subject.lagging()).toEqual(due ? [A] : [])
      })

      const ends: Readonly<Record<string, Partial<FinishedRun>>> = {
        'in sync': {},
        held: { state: 'held', reachedGeneration: null, dueAtMs: Date.now() + HOUR_MS },
        'in error for good': {
          state: 'error',
          reachedGeneration: null,
          dueAtMs: Number.POSITIVE_INFINITY,
          error: { code: 'X', fate: 'stop', message: 'x' },
        },
      }
      it.each(Object.entries(ends))('lag at once when they changed during a run that ended %s', async (_, content) => {
        const held = await lease(A)
        const planned = await generation(A)
        await subject.raiseGeneration(A)
        const run = runOf({ generation: planned, reachedGeneration: planned, ...content })
        expect(await store.finish(held, run)).toBe(true)
        expect(await subject.lagging()).toEqual([A])
      })
    })

    describe('access requests', () => {
      const error = (fate: Fate) => ({
        state: 'error' as const,
        reason: `it said ${fate}`,
        error: { code: 'X', fate, message: `it said ${fate}` },
      })
      const cases: Readonly<Record<string, readonly [runs: readonly Partial<FinishedRun>[], state: string]>> = {
        'approved while nothing is known': [[], 'APPROVED'],
        'live when their brokers have the generation': [[{ reachedGeneration: 1 }], 'LIVE'],
        'approved while something is held': [[{ state: 'held', reason: 'a window' }], 'APPROVED'],
        'in error when a run ends in a conflict': [[{ state: 'conflict', reason: 'a name' }], 'ERROR: a name'],
        'in error when a plan is refused': [[{ state: 'refused', reason: 'a lot' }], 'ERROR: a lot'],
        'in error when nothing helps but a person': [[error('stop')], 'ERROR: it said stop'],
        'approved when runs fail for a moment': [[error('retry'), error('wait')], 'APPROVED'],
        'in error when three in a row fail': [[error('retry'), error('wait'), error('retry')], 'ERROR: it said retry'],
        'approved when what overtook a run is no failure': [
          [error('retry'), { state: 'lagging', reason: 'overtaken' }, error('retry')],
          'APPROVED',
        ],
        'live through failures after their brokers had the generation': [
          [{ reachedGeneration: 1 }, error('retry'), error('wait'), error('retry'), error('retry')],
          'LIVE',
        ],
        'in error by what a person must settle, though they were live': [
          [{ reachedGeneration: 1 }, { state: 'conflict', reason: 'a name' }],
          'ERROR: a name',
        ],
        'in error by the newest failure': [
          [{ state: 'conflict', reason: 'a name' }, error('retry')],
          'ERROR: it said retry',
        ],
        'live again when it is over': [[error('stop'), { reachedGeneration: 1 }], 'LIVE'],
      }
      it.each(Object.entries(cases))('are %s', async (_, [ended, expected]) => {
        for (const content of ended) await finish(A, { generation: 1, ...content })
        const { state, reason } = await subject.requestState(A)
        expect(reason === null ? state : `${state}: ${reason}`).toBe(
          expected.replace('ERROR: ', 'ERROR: Broker broker1: '),
        )
      })

      it('count in the desired state while they are in error', async () => {
        await finish(A, { generation: 1, ...error('stop') })
        expect((await facts(A)).registration.accessRequests).toHaveLength(1)
      })
    })

    describe('sweeps', () => {
      const found = async () => {
        const settled: string[] = []
        for await (const chunk of subject.sweepStore.settled(A)) {
          settled.push(...chunk.map(({ registration }) => registration.registrationId))
        }
        const unsettled: string[] = []
        for await (const chunk of subject.sweepStore.unsettled(A)) {
          unsettled.push(...chunk.map(({ registrationId }) => registrationId))
        }
        return { settled: settled.sort(), unsettled: unsettled.sort() }
      }

      it('compare what is settled and try again what is not', async () => {
        const others = { held: {}, conflict: {}, error: {}, refused: {} } as const
        for (const state of Object.keys(others) as (keyof typeof others)[]) {
          const pair = pairOf(`in-${state}`)
          await subject.addPair(pair)
          await finish(pair, { state, dueAtMs: Number.POSITIVE_INFINITY })
        }
        await subject.addPair(B)
        await settle(A)
        expect(await found()).toEqual({
          settled: ['app-a'],
          unsettled: ['app-b', 'in-conflict', 'in-error', 'in-held', 'in-refused'],
        })
      })

      it('know of a settled registration what a run of it would, as far as a comparison asks', async () => {
        const queue: ObjectRef = { kind: 'queue', name: 'keymesh-q' }
        const withdrawn: ObjectRef = { kind: 'clientUsername', name: 'key-gone' }
        const intents = [USER, ACL, PROFILE, queue, withdrawn].map((object) => intent(object))
        await record(A, intents, { confirmations: intents.map(({ object }) => confirmation(object)) })
        await settle(A, { ledgerChanges: { forget: [], withdraw: [withdrawn], restore: [] } })
        await subject.requestPassword(A, 'key-a')
        const { registration, policy, protocols, ledger } = await facts(A)
        const settled: RegistrationFacts[] = []
        for await (const chunk of subject.sweepStore.settled(A)) settled.push(...chunk)
        expect(settled).toMatchObject([{ brokerId: A.brokerId, registration, policy, protocols }])
        expect(registration.accessRequests).toHaveLength(1)
        const rows = new Map(settled[0]?.ledger.map((entry) => [entry.object.name, entry]))
        for (const { name } of [USER, queue, withdrawn]) {
          const entry = ledger.find(({ object }) => object.name === name)
          const { withdrawnAtMs, passwordDue, registrationId } = entry ?? {}
          expect(rows.get(name)).toMatchObject({ withdrawnAtMs, passwordDue, registrationId })
        }
        expect(rows.get(queue.name)?.applied?.attributes.owner).toBe('x')
        expect(rows.get(USER.name)?.passwordDue).toBe(true)
        expect(rows.get(withdrawn.name)?.withdrawnAtMs).not.toBeNull()
      })

      it('see a settled pair that is due again among those to try', async () => {
        await settle(A, { dueAtMs: Date.now() - 1000 })
        expect((await found()).unsettled).toEqual(['app-a'])
      })

      it('compare a withdrawn registration while it has objects there', async () => {
        await record(A, [intent(USER)])
        await subject.withdraw(A)
        await settle(A)
        expect(await found()).toEqual({ settled: ['app-a'], unsettled: [] })
        await settle(A, { ledgerChanges: { forget: [USER], withdraw: [], restore: [] } })
        expect(await found()).toEqual({ settled: [], unsettled: [] })
      })

      it('see one broker of one account', async () => {
        await subject.addPair(pairOf('app-c', 'broker2'))
        await subject.addPair(FOREIGN)
        expect(await found()).toEqual({ settled: [], unsettled: ['app-a'] })
      })
    })

    describe('logins', () => {
      const KEY = consumerKey('key-a')
      /** What a login with the credential of `A` came to. */
      const login = (outcome: 'accepted' | 'rejected', credentialVersion = 1, protocol: Protocol = 'mqtt') => {
        const verdict = outcome === 'accepted' ? { outcome } : { outcome, detail: 'wrong password' }
        return { pair: A, login: { consumerKey: KEY, protocol, credentialVersion, verdict, checkedAtMs: Date.now() } }
      }
      const confirmed = async (registrationId: RegistrationId | null = null) => {
        const keys: string[] = []
        for await (const chunk of subject.sweepStore.confirmedLogins(A, registrationId)) {
          keys.push(...chunk.map(({ pair, consumerKey: key, version }) => `${pair.registrationId} ${key} ${version}`))
        }
        return keys
      }
      const confirm = async (pair: Pair, object: ObjectRef, credentialVersion: number): Promise<void> => {
        await store.intend(await lease(pair), [intent(object)])
        await subject.expireLease(pair)
        await settle(pair, { confirmations: [confirmation(object, { credentialVersion, passwordWritten: true })] })
      }

      it('are made with live credentials whose password the broker confirmed, in order, of one registration or all', async () => {
        await subject.addPair(B, { 'key-b': 1, 'key-unconfirmed': 1 })
        expect(await confirmed()).toEqual([])
        await confirm(B, { kind: 'clientUsername', name: 'key-b' }, 1)
        await confirm(A, USER, 1)
        expect(await confirmed()).toEqual(['app-a key-a 1', 'app-b key-b 1'])
        expect(await confirmed(B.registrationId)).toEqual(['app-b key-b 1'])
        await subject.withdraw(B)
        expect(await confirmed()).toEqual(['app-a key-a 1'])
        await finish(A, { confirmations: [confirmation(USER, { credentialVersion: 7 })] })
        expect(await confirmed()).toEqual([])
      })

      it('that a broker rejected make their pair due, once; those that it accepted do not', async () => {
        await confirm(A, USER, 1)
        await subject.sweepStore.recordLogins([login('accepted')])
        await subject.sweepStore.recordLogins([login('rejected', 2)])
        await subject.sweepStore.recordLogins([login('rejected'), login('accepted', 1, 'smf')])
        expect(await subject.lagging()).toEqual([])
        await subject.sweepStore.recordLogins([login('rejected')])
        expect(await subject.lagging()).toEqual([A])
        const written = confirmation(USER, { credentialVersion: 1, passwordWritten: true, passwordReapplied: true })
        await settle(A, { confirmations: [written] })
        await subject.sweepStore.recordLogins([login('rejected')])
        expect(await subject.lagging()).toEqual([])
      })
    })

    describe('invariant 13: accounts are walls', () => {
      it('the same ids in two accounts share no lease, no ledger, no secret and no state', async () => {
        await subject.addPair(FOREIGN, { 'key-a': 5 })
        const [ours, theirs] = [await lease(A), await lease(FOREIGN, 'worker-2')]
        await store.intend(ours, [intent(USER), intent(PROFILE)])
        expect((await facts(FOREIGN)).ledger).toEqual([])
        expect((await store.secret(FOREIGN, consumerKey('key-a')))?.secret.reveal()).toBe(secretOf(FOREIGN, 'key-a', 5))
        expect((await store.secret(A, consumerKey('key-a')))?.secret.reveal()).toBe(secretOf(A, 'key-a', 1))
        await store.intend(theirs, [intent(USER)])
        const forget = { forget: [USER, PROFILE], withdraw: [], restore: [] }
        expect(await store.finish(theirs, runOf({ reachedGeneration: 1, generation: 1, ledgerChanges: forget }))).toBe(
          true,
        )
        expect(Object.keys(await ledger(A)).sort()).toEqual(['clientProfile/keymesh-direct', 'clientUsername/key-a'])
        expect(await subject.lagging()).toEqual([A])
        expect(await store.mayWrite(ours, 1, TTL_MS)).toBe(true)
        await subject.raiseGeneration(FOREIGN)
        expect(await generation(A)).toBe(1)
      })
    })
  })
}
