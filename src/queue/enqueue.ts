import type { Protocol } from '../domain/catalogue.ts'
import type { AccountId, RegistrationId } from '../domain/ids.ts'
import type { Pair, RunTrigger } from '../reconcile/store-port.ts'
import { priorityOf } from './job-options.ts'
import type { NewJob, QueueBackend } from './job-queue.ts'
import { type BrokerKey, brokerQueue, NOTIFICATIONS_QUEUE, REGISTRATIONS_QUEUE } from './queue-names.ts'

export interface Enqueuer {
  /** Looks up the registration's brokers when the job runs, then one job for each. */
  registration(accountId: AccountId, registrationId: RegistrationId): Promise<boolean>
  pairs(pairs: readonly Pair[], trigger: RunTrigger): Promise<boolean>
  sweep(broker: BrokerKey, trigger: RunTrigger, delayMs?: number): Promise<boolean>
  /** Logins on a broker, of one registration or all, over one protocol or all. No poll finds them when they are lost. */
  verify(broker: BrokerKey, what: VerifyWhat): Promise<boolean>
  /** Sends what waits for these notification endpoints. */
  notifications(endpoints: readonly EndpointKey[]): Promise<boolean>
}

export interface EndpointKey {
  readonly accountId: AccountId
  readonly endpointId: string
}

export interface VerifyWhat {
  readonly registrationId?: RegistrationId
  readonly protocol?: Protocol
}

export interface EnqueuerOptions {
  readonly backend: QueueBackend
  readonly now: () => number
  /** Told when the queue did not take the jobs; nothing is lost but time. */
  readonly onMissed: (what: string, error: unknown) => void
  /** Of who asks, if that is traced: `traceparent`. */
  readonly trace?: () => string | undefined
  /** A caller that answers a request does not wait longer for a queue that is away. */
  readonly patienceMs?: number
}

/**
 * Called after the transaction that made the work was committed. Never throws and never waits long: a job that was not
 * added costs time until the poll finds the work, never truth (invariant 3). False says that it was not added in time.
 */
export function createEnqueuer({
  backend,
  now,
  onMissed,
  trace = () => undefined,
  patienceMs = 2_000,
}: EnqueuerOptions): Enqueuer {
  const addTo = (queue: string, jobs: readonly NewJob[]): Promise<void> =>
    backend.queue(queue).add(traced(jobs, trace()))
  const add = async (what: string, additions: Promise<unknown>): Promise<boolean> => {
    try {
      await within(additions, patienceMs)
      return true
    } catch (error) {
      onMissed(what, error)
      return false
    }
  }
  return {
    registration: (accountId, registrationId) =>
      add(`registration ${registrationId}`, addTo(REGISTRATIONS_QUEUE, [registrationJob(accountId, registrationId)])),
    pairs: (pairs, trigger) =>
      add(
        `${pairs.length} registrations (${trigger})`,
        Promise.all(
          [...byBroker(pairs)].map(([queue, some]) =>
            addTo(
              queue,
              some.map((pair) => pairJob(pair, trigger, now())),
            ),
          ),
        ),
      ),
    sweep: (broker, trigger, delayMs = 0) =>
      add(
        `sweep of broker ${broker.brokerId}`,
        addTo(brokerQueue(broker), [sweepJob(broker, trigger, now(), delayMs)]),
      ),
    verify: (broker, what) =>
      add(`logins on broker ${broker.brokerId}`, addTo(brokerQueue(broker), [verifyJob(broker, what, now())])),
    notifications: (endpoints) =>
      add(
        `notifications of ${endpoints.length} endpoints`,
        addTo(NOTIFICATIONS_QUEUE, endpoints.map(notificationsJob)),
      ),
  }
}

/** Goes with the first that asks: a job that stands for several belongs to that one's trace. */
function traced(jobs: readonly NewJob[], trace: string | undefined): readonly NewJob[] {
  return trace === undefined ? jobs : jobs.map((job) => ({ ...job, payload: { ...job.payload, trace } }) as NewJob)
}

/** A person waits; the poll and the sweep do not cut a backoff short. */
const isUrgent = (trigger: RunTrigger): boolean => trigger !== 'poll' && trigger !== 'sweep'

function registrationJob(accountId: AccountId, registrationId: RegistrationId): NewJob {
  return {
    name: 'reconcile-registration',
    payload: { accountId, registrationId },
    deduplication: { id: `${accountId}/${registrationId}`, trailingRun: true },
    urgent: true,
  }
}

function pairJob({ accountId, brokerId, registrationId }: Pair, trigger: RunTrigger, nowMs: number): NewJob {
  return {
    name: 'reconcile-pair',
    payload: { accountId, brokerId, registrationId, trigger },
    // A revocation waits for no other job of its pair, neither for one that runs nor for one that waits.
    deduplication: { id: `${trigger === 'revocation' ? trigger : 'pair'}/${registrationId}`, trailingRun: true },
    priority: priorityOf(trigger, nowMs),
    urgent: isUrgent(trigger),
  }
}

/** A broker has one sweep at a time, so a sweep never takes the other slots of its queue from pairs. */
function sweepJob({ accountId, brokerId }: BrokerKey, trigger: RunTrigger, nowMs: number, delayMs: number): NewJob {
  return {
    name: 'sweep-broker',
    payload: { accountId, brokerId, trigger },
    deduplication: { id: 'sweep', trailingRun: isUrgent(trigger) },
    priority: priorityOf(trigger, nowMs + delayMs),
    urgent: isUrgent(trigger),
    delayMs,
  }
}

function verifyJob(
  { accountId, brokerId }: BrokerKey,
  { registrationId, protocol }: VerifyWhat,
  nowMs: number,
): NewJob {
  const what = { ...(registrationId && { registrationId }), ...(protocol && { protocol }) }
  return {
    name: 'verify-broker',
    payload: { accountId, brokerId, ...what },
    deduplication: { id: `verify/${protocol ?? 'all'}/${registrationId ?? ''}`, trailingRun: true },
    priority: priorityOf('operator', nowMs),
    urgent: true,
  }
}

function notificationsJob({ accountId, endpointId }: EndpointKey): NewJob {
  return {
    name: 'deliver-notifications',
    payload: { accountId, endpointId },
    deduplication: { id: `${accountId}/${endpointId}`, trailingRun: true },
    urgent: true,
  }
}

function byBroker(pairs: readonly Pair[]): Map<string, Pair[]> {
  const queues = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const name = brokerQueue(pair)
    const queue = queues.get(name)
    if (queue === undefined) queues.set(name, [pair])
    else queue.push(pair)
  }
  return queues
}

async function within<Result>(promise: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`the queue did not answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
