import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { retryDelayMs } from './domain/notifications.ts'
import { Secret } from './domain/secret.ts'
import type { NotificationSender } from './notifications/notification-sender.ts'
import type { Database } from './store/database.ts'
import { makeDigest } from './store/notification-digest.ts'
import { type EndpointSecrets, openSecrets } from './store/notification-endpoints.ts'
import type { EndpointPlace } from './store/notification-endpoints-view.ts'
import {
  type DueDelivery,
  type EndpointLease,
  type LeasedEndpoint,
  leaseEndpoint,
  nextDelivery,
  recordAttempt,
  releaseEndpoint,
} from './store/notification-outbox.ts'
import type { RandomSource } from './store/random-source.ts'
import type { Sealer } from './store/sealer-port.ts'

export interface NotifierDependencies {
  readonly db: Database
  readonly sealer: Sealer
  readonly sender: Pick<NotificationSender, 'send'>
  readonly now: () => number
  readonly ids: RandomSource
  /** In [0, 1). */
  readonly random: () => number
  /** How long a delivery is tried. */
  readonly retryMs: number
  readonly log: Logger
}

/** Of one call; what is left is found by the next poll. */
const MAX_SENT = 50

/**
 * Sends what waits for one endpoint, oldest first. A receiver that fails holds up what comes after, which gathers into one
 * digest meanwhile; a delivery that the receiver refuses waits alone. At least once: a crash between the receiver's
 * answer and its record sends again, with the same id and body.
 */
export class Notifier {
  readonly #dependencies: NotifierDependencies

  constructor(dependencies: NotifierDependencies) {
    this.#dependencies = dependencies
  }

  /** How many attempts were made. */
  async deliver(place: EndpointPlace, signal?: AbortSignal): Promise<number> {
    const { db, now } = this.#dependencies
    const lease: EndpointLease = { ...place, holder: randomUUID() }
    let sent = 0
    try {
      while (sent < MAX_SENT && signal?.aborted !== true) {
        const endpoint = await leaseEndpoint(db, lease, now())
        if (endpoint === null || (endpoint.blockedUntilMs ?? 0) > now()) break
        const delivery = (await nextDelivery(db, place, now())) ?? (await this.#gathered(place))
        if (delivery === null) break
        await this.#attempt(place, endpoint, delivery, signal)
        sent += 1
      }
    } finally {
      await releaseEndpoint(db, lease)
    }
    return sent
  }

  async #gathered(place: EndpointPlace): Promise<DueDelivery | null> {
    const { db, now, ids, retryMs } = this.#dependencies
    const made = await makeDigest(db, place, { nowMs: now(), retryMs, random: ids })
    return made ? await nextDelivery(db, place, now()) : null
  }

  async #attempt(
    place: EndpointPlace,
    endpoint: LeasedEndpoint,
    { id, body, attempts, giveUpAtMs }: DueDelivery,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { db, sealer, sender, now, random, log } = this.#dependencies
    const secrets = await openSecrets(sealer, place, endpoint)
    const url = new Secret(secrets.url)
    const attempt = await sender.send({ id, url, body, secrets: signingSecrets(secrets, now()), nowMs: now() }, signal)
    const delayMs =
      attempt.outcome === 'delivered' || attempt.outcome === 'gone'
        ? null
        : retryDelayMs(attempts + 1, random(), attempt.outcome === 'failed' ? attempt.retryAfterMs : null)
    const nextAttemptAtMs = delayMs === null || now() + delayMs > giveUpAtMs ? null : now() + delayMs
    await recordAttempt(db, { place, id, nowMs: now(), attempt, nextAttemptAtMs })
    if (attempt.outcome === 'delivered') return
    const what = { account: place.accountId, endpoint: endpoint.name, delivery: id, attempt: attempts + 1 }
    const fate = nextAttemptAtMs === null ? 'dead' : 'retry'
    log.warn(
      { event: 'notification.not-delivered', ...what, fate, error: attempt.message },
      'A notification was not delivered',
    )
  }
}

const signingSecrets = ({ signing, previous }: EndpointSecrets, nowMs: number): readonly Secret[] => [
  new Secret(signing),
  ...previous.filter(({ untilMs }) => untilMs > nowMs).map((older) => new Secret(older.signing)),
]
