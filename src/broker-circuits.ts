import { randomUUID } from 'node:crypto'
import { KeymeshError } from './domain/errors.ts'
import { type BrokerHealth, isBrokerTrouble } from './reconcile/broker-health.ts'
import type { BrokerKey } from './reconcile/sweep-port.ts'
import { batched } from './store/batched.ts'
import {
  type AfterFailure,
  admit,
  type BrokerFailure,
  peek,
  recordFailures,
  recordSuccess,
} from './store/broker-health.ts'
import type { Database } from './store/database.ts'
import { recordRest } from './store/waiting-pairs.ts'

/** A good answer serves the runs of this process for so long; a failure of this process is known at once. */
const FRESH_MS = 1_000

interface Known {
  readonly untilMs: number
  /** Other processes may have recorded failures, which the next success has to forget. */
  readonly failed: boolean
}

export interface BrokerCircuitsOptions {
  readonly db: Database
  readonly now: () => number
  /** In [0, 1). */
  readonly random: () => number
  readonly onChange: (broker: BrokerKey, health: BrokerHealth) => void
}

/** Lets a sick broker rest, and one run at a time find out whether it is well again. */
export class BrokerCircuits {
  readonly #options: BrokerCircuitsOptions
  readonly #closed = new Map<string, Known>()
  /** Many runs may be under way when a broker goes away: they would stand in line for its one row. */
  readonly #recordFailure = new Map<string, (failure: BrokerFailure) => Promise<AfterFailure>>()
  readonly #recordRest = new Map<string, (message: string) => Promise<unknown>>()

  constructor(options: BrokerCircuitsOptions) {
    this.#options = options
  }

  /**
   * Runs `work` unless the broker rests: then throws `BROKER_RESTING`, which is no failure of the broker. A person who
   * asks is not made to wait: `force` works on a broker that rests, and its success ends the rest.
   */
  async run<Result>(broker: BrokerKey, work: () => Promise<Result>, { force = false } = {}): Promise<Result> {
    // Others may have found the broker to be sick since this process knew that it was well.
    if (force) this.#closed.delete(nameOf(broker))
    const prober = force ? null : await this.#admit(broker)
    try {
      const result = await work()
      await this.#succeeded(broker)
      return result
    } catch (error) {
      if (isBrokerTrouble(error)) {
        const health = await this.#failed(broker, prober)
        // Trying it once more by itself is no use to this run: all of the broker's work waits for the end of its rest.
        if (health.state === 'open' && !force) throw untilRested(error, health.retryAtMs - this.#options.now())
      }
      // The broker answered, whatever else went wrong.
      else if (prober !== null) await this.#succeeded(broker)
      throw error
    }
  }

  /** Throws `BROKER_RESTING` while the broker rests; takes no turn. */
  async refuseResting(broker: BrokerKey): Promise<void> {
    const { db, now } = this.#options
    const admitted = await peek(db, broker, now())
    if (admitted.to === 'rest') throw resting(broker, admitted.untilMs - now())
  }

  /** The name under which this run probes, or null when the broker is well. */
  async #admit(broker: BrokerKey): Promise<string | null> {
    const { db, now } = this.#options
    const nowMs = now()
    const known = this.#closed.get(nameOf(broker))
    if (known !== undefined && known.untilMs > nowMs) return null
    const prober = randomUUID()
    const admitted = await admit(db, broker, prober, nowMs)
    switch (admitted.to) {
      case 'run':
        this.#closed.set(nameOf(broker), { untilMs: nowMs + FRESH_MS, failed: true })
        return null
      case 'probe':
        return prober
      case 'rest':
        this.#closed.delete(nameOf(broker))
        if (!admitted.isTried) await this.#tellWaiting(broker, admitted.untilMs - nowMs)
        throw resting(broker, admitted.untilMs - nowMs)
      default: {
        const unreachable: never = admitted
        return unreachable
      }
    }
  }

  async #succeeded(broker: BrokerKey): Promise<void> {
    const known = this.#closed.get(nameOf(broker))
    if (known?.failed === false) return
    await recordSuccess(this.#options.db, broker)
    this.#closed.set(nameOf(broker), { untilMs: this.#options.now() + FRESH_MS, failed: false })
  }

  async #failed(broker: BrokerKey, prober: string | null): Promise<BrokerHealth> {
    const { db, now, random, onChange } = this.#options
    const name = nameOf(broker)
    this.#closed.delete(name)
    const record = this.#recordFailure.get(name) ?? batched((failures) => recordFailures(db, broker, failures))
    this.#recordFailure.set(name, record)
    const { health, changed } = await record({ nowMs: now(), random: random(), prober })
    if (changed && health.state === 'open') {
      onChange(broker, health)
      await this.#tellWaiting(broker, health.retryAtMs - now())
    }
    return health
  }

  /** Registrations that wait for the broker say why, though others tried it. */
  async #tellWaiting(broker: BrokerKey, restMs: number): Promise<void> {
    const { db, now } = this.#options
    const name = nameOf(broker)
    const record =
      this.#recordRest.get(name) ??
      batched(async (messages) => {
        await recordRest(db, { broker, atMs: now(), message: messages[0] ?? '' })
        return messages
      })
    this.#recordRest.set(name, record)
    // They are told with the next run that is made to wait.
    await record(resting(broker, restMs).message).catch(() => undefined)
  }
}

const nameOf = ({ accountId, brokerId }: BrokerKey): string => JSON.stringify([accountId, brokerId])

/** Who waits for the prober asks again soon: it may be done in a moment. */
const ASK_AGAIN_MS = 5_000

const resting = ({ brokerId }: BrokerKey, restMs: number): KeymeshError =>
  new KeymeshError({
    code: 'BROKER_RESTING',
    fate: 'wait',
    message: `Broker ${brokerId} failed several times in a row and rests for ${Math.ceil(Math.max(1, restMs) / 1000)} s.`,
    hint: 'It is tried again by itself; `keymesh reconcile --broker` tries it at once.',
    retryAfterMs: askAgainMs(restMs),
  })

const askAgainMs = (restMs: number): number => Math.max(50, Math.min(restMs, ASK_AGAIN_MS))

/** The same failure, with the fate of all work of a broker that rests. */
function untilRested(error: unknown, restMs: number): unknown {
  if (!(error instanceof KeymeshError)) return error
  const { code, message, hint, cause } = error
  return new KeymeshError({
    code,
    message,
    cause,
    fate: 'wait',
    retryAfterMs: askAgainMs(restMs),
    ...(hint && { hint }),
  })
}
