import { codeOf, errorLine } from '../domain/errors.ts'
import { registrationId as toRegistrationId } from '../domain/ids.ts'
import type { Engine } from '../engine.ts'
import { concurrently } from '../reconcile/concurrently.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { emittedEvents } from './emitted-events.ts'
import type { Failed, RunEvent, VerifyEvent, VerifyRequest } from './operations.ts'

interface RunOptions {
  readonly allowDisruptive: boolean
  readonly signal: AbortSignal
}

/** Sweeps one broker after the other. */
export async function* sweepEvents(
  engine: Pick<Engine, 'sweep'>,
  brokers: readonly BrokerKey[],
  { allowDisruptive, signal }: RunOptions,
): AsyncIterable<RunEvent> {
  for (const broker of brokers) {
    const { brokerId } = broker
    yield* emittedEvents<RunEvent>(signal, async ({ emit, mention }, until) => {
      try {
        const result = await engine.sweep(broker, {
          trigger: 'operator',
          allowDisruptive,
          signal: until,
          onProgress: (progress) => mention({ type: 'progress', brokerId, progress }),
        })
        await emit({ type: 'broker', brokerId, result })
      } catch (error) {
        // Being told to stop is about all brokers.
        if (until.aborted) throw error
        await emit({ type: 'broker-failed', brokerId, ...failed(error) })
      }
    })
  }
}

/** Reconciles the pairs, one after the other. */
export async function* pairEvents(
  engine: Pick<Engine, 'reconcilePair'>,
  pairs: readonly Pair[],
  options: RunOptions,
): AsyncIterable<RunEvent> {
  for (const pair of pairs) {
    let event: RunEvent
    try {
      const outcome = await engine.reconcilePair(pair, { trigger: 'operator', ...options })
      if (outcome.status === 'busy') event = { type: 'registration', pair, outcome: { status: 'busy' } }
      else {
        const { executed, plan } = outcome.status === 'done' ? outcome : { executed: [], plan: null }
        event = { type: 'registration', pair, outcome: { status: outcome.status, writes: executed.length, plan } }
      }
    } catch (error) {
      if (options.signal.aborted) throw error
      event = { type: 'registration-failed', pair, ...failed(error) }
    }
    yield event
  }
}

/** Each has its own pace; this many are waited for side by side. */
const BROKERS_AT_A_TIME = 4

/** Logs in on the brokers of the targets side by side. */
export async function* verifyEvents(
  engine: Pick<Engine, 'verify'>,
  targets: readonly BrokerKey[],
  { registrationId, protocol }: VerifyRequest,
  signal: AbortSignal,
): AsyncIterable<VerifyEvent> {
  for (const { brokerId } of targets) yield { type: 'broker', brokerId }
  const what = {
    ...(registrationId === undefined ? {} : { registrationId: toRegistrationId(registrationId) }),
    ...(protocol === undefined ? {} : { protocol }),
  }
  yield* emittedEvents<VerifyEvent>(signal, async ({ emit }, until) => {
    await concurrently(targets, BROKERS_AT_A_TIME, async ({ accountId, brokerId }) => {
      try {
        for await (const finding of engine.verify({ accountId, brokerId }, { ...what, signal: until })) {
          await emit({ type: 'finding', brokerId, finding })
        }
      } catch (error) {
        // Being told to stop, or that logins are off, is about all brokers.
        if (until.aborted || codeOf(error) === 'LOGINS_OFF') throw error
        await emit({ type: 'broker-failed', brokerId, ...failed(error) })
      }
    })
  })
}

const failed = (error: unknown): Failed => ({ code: codeOf(error), error: errorLine(error) })
