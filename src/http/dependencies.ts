import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { AccountId } from '../domain/ids.ts'
import type { Secret } from '../domain/secret.ts'
import type { OperatedEngine } from '../operations/store-operations.ts'
import type { Enqueuer } from '../queue/enqueue.ts'
import type { JobCounts } from '../queue/job-queue.ts'
import type { BrokerKey } from '../queue/queue-names.ts'
import type { Database } from '../store/database.ts'
import type { RandomSource } from '../store/random-source.ts'
import type { Sealer } from '../store/sealer-port.ts'

/** The settings that the API looks at. */
export type HttpConfig = Pick<
  Config,
  | 'credentialNameOptional'
  | 'userTokenLifetimeMs'
  | 'apiTokenLifetimeMs'
  | 'rateLimitPerMinute'
  | 'trustedProxies'
  | 'graceMs'
  | 'maxTopics'
  | 'maxDeletes'
  | 'logins'
  | 'notifications'
  | 'metrics'
>

/** Everything that routes work with; the composition root gives it, a test gives its own. */
export interface HttpDependencies {
  readonly db: Database
  readonly sealer: Sealer
  /** Epoch milliseconds. */
  readonly now: () => number
  readonly log: Logger
  readonly config: HttpConfig
  /** Asked after the transaction was committed; never throws, never waits long. */
  readonly enqueue: Enqueuer
  readonly random: RandomSource
  readonly engine: OperatedEngine
  readonly passwords: Passwords
  readonly userTokens: UserTokens
  /** Absent: nobody watches requests. */
  readonly observe?: HttpObserver
  /** Absent: there is no /metrics. */
  readonly metrics?: HttpMetrics
  /** How much waits in the queues of brokers; absent: not known. */
  readonly queueDepths?: QueueDepths
  /** Checks every answer against its schema and refuses to send another; for tests, as it costs time. */
  readonly checkAnswers?: boolean
}

/** Called when a request has arrived. */
export type HttpObserver = (request: {
  readonly id: string
  readonly method: string
  /** The pattern of the route; `none` when there is none. */
  readonly route: string
  readonly traceparent: string | undefined
}) => {
  /** Runs what follows as part of the request. */
  enter(next: () => void): void
  answered(status: number, seconds: number): void
}

export interface HttpMetrics {
  readonly contentType: string
  /** With an account, without what is of others. */
  render(options: { readonly account?: string }): Promise<string>
}

/** By broker id, of the brokers of one account. */
export type QueueDepths = (brokers: readonly BrokerKey[]) => Promise<ReadonlyMap<string, JobCounts>>

/** Password hashing, as `src/secrets/passwords.ts` does it. */
export interface Passwords {
  hash(password: Secret): Promise<string>
  /** With null, for an unknown user, it takes the same time and answers false. */
  verify(hash: string | null, password: Secret): Promise<boolean>
}

/** What a user token says. Whether it still counts is looked up on every call. */
export interface UserTokenClaims {
  readonly userId: string
  /** The account that the token was exchanged for; null before. */
  readonly accountId: AccountId | null
  /** Must equal the user's: raised when older tokens must end. */
  readonly generation: number
}

/** Signed user tokens, as `src/secrets/user-tokens.ts` makes them. */
export interface UserTokens {
  issue(claims: UserTokenClaims, lifetimeMs: number): Promise<string>
  /** Null for every token that is not ours, was altered, or is expired. */
  verify(token: string): Promise<UserTokenClaims | null>
}
