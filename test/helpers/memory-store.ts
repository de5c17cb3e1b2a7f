import { type ObjectRef, objectKey } from '../../src/domain/broker-object.ts'
import type { BrokerPolicy, Protocol } from '../../src/domain/catalogue.ts'
import type { ConsumerKey, RegistrationId } from '../../src/domain/ids.ts'
import type { RegistrationOnBroker } from '../../src/domain/registration.ts'
import { Secret } from '../../src/domain/secret.ts'
import { provesLogin } from '../../src/domain/verdict.ts'
import { stillInUseError } from '../../src/reconcile/apply.ts'
import type { LedgerEntry } from '../../src/reconcile/ledger.ts'
import type { RegistrationFacts } from '../../src/reconcile/plan-registration.ts'
import type {
  FinishedRun,
  Intent,
  Lease,
  LoginRecord,
  Pair,
  PairState,
  ReconcileStore,
  StoredSecret,
} from '../../src/reconcile/store-port.ts'
import type {
  BrokerKey,
  ConfirmedLogin,
  DueLogin,
  DueLoginsRequest,
  SweepStore,
} from '../../src/reconcile/sweep-port.ts'
import { policyOf } from './sample.ts'

/** A row of `pairs`, with what the catalogue says of it. */
export interface MemoryPair {
  readonly pair: Pair
  registration: RegistrationOnBroker
  protocols: readonly Protocol[]
  adoptions: ReadonlySet<string>
  generation: number
  reachedGeneration: number
  state: PairState
  reason: string | null
  dueAtMs: number | null
  withdrawalConfirmed: boolean
  /** Failed runs in a row. */
  attempts: number
  /** Of the access requests that tie it to the broker. */
  request: { readonly state: 'APPROVED' | 'LIVE' | 'ERROR'; readonly reason: string | null }
  leaseHolder: string | null
  leaseToken: number
  leaseUntilMs: number
}

type Content = Partial<Pick<MemoryPair, 'registration' | 'protocols' | 'adoptions'>>

const keyOf = (...parts: readonly string[]): string => JSON.stringify(parts)
const pairKey = ({ accountId, brokerId, registrationId }: Pair): string => keyOf(accountId, brokerId, registrationId)
const secretKey = ({ accountId, registrationId }: Pair, key: string): string => keyOf(accountId, registrationId, key)
const sameBroker = (a: BrokerKey, b: BrokerKey): boolean => a.accountId === b.accountId && a.brokerId === b.brokerId

/** The store of the reconcile core in memory; it keeps the promises of the one on PostgreSQL. */
export class MemoryStore implements ReconcileStore, SweepStore {
  now: () => number
  /** Runs that finished, in order. */
  readonly runs: { readonly pair: Pair; readonly run: FinishedRun }[] = []
  readonly policies = new Map<string, BrokerPolicy>()
  readonly #chunkSize: number
  readonly #pairs = new Map<string, MemoryPair>()
  readonly #secrets = new Map<string, StoredSecret>()
  readonly #ledger = new Map<string, LedgerEntry>()
  readonly #logins = new Map<string, { readonly pair: Pair; readonly login: LoginRecord }>()

  constructor(now: () => number, chunkSize = 250) {
    this.now = now
    this.#chunkSize = chunkSize
  }

  /** Writes a registration as a change of the catalogue would: the generation grows. New secrets are made up. */
  put(pair: Pair, content: Content & { readonly registration: RegistrationOnBroker }): MemoryPair {
    for (const { consumerKey, version } of content.registration.credentials) {
      const secret = new Secret(secretText(pair, consumerKey, version))
      this.#secrets.set(secretKey(pair, consumerKey), { version, secret })
    }
    const row = this.#pairs.get(pairKey(pair)) ?? newPair(pair, content.registration)
    Object.assign(row, content)
    row.generation += 1
    row.attempts = 0
    row.dueAtMs = null
    this.#pairs.set(pairKey(pair), row)
    return row
  }

  putSecret(pair: Pair, consumerKey: string, secret: StoredSecret): void {
    this.#secrets.set(secretKey(pair, consumerKey), secret)
  }

  row(pair: Pair): MemoryPair {
    const row = this.#pairs.get(pairKey(pair))
    if (row === undefined) throw new Error(`no pair ${pairKey(pair)}`)
    return row
  }

  setPolicy(broker: BrokerKey, policy: Partial<BrokerPolicy>): void {
    this.policies.set(keyOf(broker.accountId, broker.brokerId), policyOf(policy))
  }

  removePair(pair: Pair): void {
    this.#pairs.delete(pairKey(pair))
  }

  /** The rows of one broker, of all registrations. */
  ledger(broker: BrokerKey): readonly LedgerEntry[] {
    const prefix = keyOf(broker.accountId, broker.brokerId).slice(0, -1)
    return [...this.#ledger].filter(([key]) => key.startsWith(`${prefix},`)).map(([, entry]) => entry)
  }

  setLedger(broker: BrokerKey, entry: LedgerEntry): void {
    this.#ledger.set(this.#ledgerKey(broker, entry.object), entry)
  }

  /** Every pair that lags or is due. */
  lagging(): readonly Pair[] {
    const nowMs = this.now()
    const isDue = (row: MemoryPair): boolean =>
      row.dueAtMs === null ? row.reachedGeneration < row.generation : row.dueAtMs <= nowMs
    return [...this.#pairs.values()].filter(isDue).map(({ pair }) => pair)
  }

  async acquire(pair: Pair, holder: string, ttlMs: number): Promise<Lease | null> {
    const row = this.#pairs.get(pairKey(pair))
    if (row === undefined || (row.leaseHolder !== null && row.leaseUntilMs >= this.now())) return null
    row.leaseHolder = holder
    row.leaseToken += 1
    row.leaseUntilMs = this.now() + ttlMs
    return { pair, holder, token: row.leaseToken }
  }

  async facts(pair: Pair): Promise<RegistrationFacts | null> {
    const row = this.#pairs.get(pairKey(pair))
    return row === undefined ? null : this.#factsOf(row)
  }

  async mayWrite(lease: Lease, generation: number, ttlMs: number): Promise<boolean> {
    const row = this.#held(lease)
    if (row === null || row.generation !== generation) return false
    row.leaseUntilMs = this.now() + ttlMs
    return true
  }

  async intend(lease: Lease, entries: readonly Intent[]): Promise<readonly ObjectRef[]> {
    if (this.#held(lease) === null) return []
    const moved = entries.flatMap(({ object, shared }) => {
      const owner = this.#ledger.get(this.#ledgerKey(lease.pair, object))?.registrationId ?? null
      return shared || owner === null || owner === lease.pair.registrationId ? [] : [{ object, owner }]
    })
    for (const { object, owner } of moved) {
      const row = this.#pairs.get(pairKey({ ...lease.pair, registrationId: owner }))
      if (row?.leaseHolder != null && row.leaseUntilMs > this.now()) throw stillInUseError(object, owner)
    }
    for (const { object, shared, origin } of entries) {
      const registrationId = shared ? null : lease.pair.registrationId
      const key = this.#ledgerKey(lease.pair, object)
      if (this.#ledger.get(key)?.registrationId === registrationId) continue
      this.#ledger.set(key, {
        object,
        registrationId,
        origin,
        applied: null,
        confirmedCredentialVersion: null,
        passwordDue: false,
        withdrawnAtMs: null,
      })
    }
    return moved.map(({ object }) => object)
  }

  async secret(pair: Pair, consumerKey: ConsumerKey): Promise<StoredSecret | null> {
    const live = this.#pairs.get(pairKey(pair))?.registration.credentials ?? []
    if (!live.some((each) => each.consumerKey === consumerKey)) return null
    return this.#secrets.get(secretKey(pair, consumerKey)) ?? null
  }

  async logins(pair: Pair): Promise<readonly LoginRecord[]> {
    const live = this.#pairs.get(pairKey(pair))?.registration.credentials ?? []
    return [...this.#logins.values()]
      .filter((each) => pairKey(each.pair) === pairKey(pair))
      .map(({ login }) => login)
      .filter(({ consumerKey }) => live.some((each) => each.consumerKey === consumerKey))
  }

  /** For a run, the pair's due time is the run's own. */
  async recordLogins(logins: readonly { readonly pair: Pair; readonly login: LoginRecord }[]): Promise<void> {
    this.#keepLogins(logins)
    for (const { pair, login } of logins) {
      const entry = this.#ledger.get(this.#ledgerKey(pair, { kind: 'clientUsername', name: login.consumerKey }))
      const isOpen = entry?.refusedLogin?.credentialVersion === login.credentialVersion && !entry.refusedLogin.reapplied
      const row = this.#pairs.get(pairKey(pair))
      if (row === undefined || !isOpen || login.verdict.outcome !== 'rejected') continue
      row.dueAtMs = Math.min(row.dueAtMs ?? Number.POSITIVE_INFINITY, this.now())
    }
  }

  async *confirmedLogins(
    broker: BrokerKey,
    registrationId: RegistrationId | null,
  ): AsyncIterable<readonly ConfirmedLogin[]> {
    const confirmed = new Map(
      this.ledger(broker)
        .filter(({ object, withdrawnAtMs }) => object.kind === 'clientUsername' && withdrawnAtMs === null)
        .map(({ object, confirmedCredentialVersion }) => [object.name, confirmedCredentialVersion]),
    )
    const logins = this.#rowsOf(broker)
      .filter((row) => isWanted(row) && (registrationId === null || row.pair.registrationId === registrationId))
      .flatMap(({ pair, registration }) =>
        registration.credentials
          .filter(({ consumerKey, version }) => confirmed.get(consumerKey) === version)
          .map(({ consumerKey, version }) => ({ pair, consumerKey, version })),
      )
      .sort((a, b) => (a.consumerKey < b.consumerKey ? -1 : 1))
    for (const chunk of chunks(logins, this.#chunkSize)) yield chunk
  }

  #keepLogins(logins: readonly { readonly pair: Pair; readonly login: LoginRecord }[]): void {
    for (const { pair, login } of logins) {
      const live = this.#pairs.get(pairKey(pair))?.registration.credentials ?? []
      const { consumerKey, credentialVersion: version } = login
      if (!live.some((each) => each.consumerKey === consumerKey && each.version === version)) continue
      this.#logins.set(keyOf(pair.accountId, pair.brokerId, consumerKey, login.protocol), { pair, login })
    }
    for (const { pair, login } of logins) {
      const { consumerKey: name, credentialVersion: version, verdict } = login
      const isProved = logins.some((each) => each.login.consumerKey === name && provesLogin(each.login.verdict))
      if (!isProved && verdict.outcome !== 'rejected') continue
      const object = { kind: 'clientUsername', name } as const
      const entry = this.#ledger.get(this.#ledgerKey(pair, object))
      if (entry?.confirmedCredentialVersion !== version) continue
      const { refusedLogin, ...rest } = entry
      const reapplied = refusedLogin?.reapplied === true && refusedLogin.credentialVersion === version
      const refused = isProved ? {} : { refusedLogin: { credentialVersion: version, reapplied } }
      this.#ledger.set(this.#ledgerKey(pair, object), { ...rest, ...refused })
    }
  }

  async dueLogins(broker: BrokerKey, { nowMs, periodMs, limit }: DueLoginsRequest): Promise<readonly DueLogin[]> {
    const due = this.#rowsOf(broker)
      .filter(isSettled)
      .flatMap(({ pair, registration }) =>
        registration.credentials.map(({ consumerKey, version }) => {
          const known = [...this.#logins.values()].filter(
            (each) =>
              pairKey(each.pair) === pairKey(pair) &&
              each.login.consumerKey === consumerKey &&
              each.login.credentialVersion === version,
          )
          const checkedAtMs = Object.fromEntries(known.map(({ login }) => [login.protocol, login.checkedAtMs]))
          return { pair, consumerKey, version, checkedAtMs }
        }),
      )
    const last = ({ checkedAtMs }: DueLogin): number => Math.max(0, ...Object.values(checkedAtMs))
    return due
      .filter((each) => last(each) <= nowMs - periodMs)
      .sort((a, b) => last(a) - last(b))
      .slice(0, limit)
  }

  async finish(lease: Lease, run: FinishedRun): Promise<boolean> {
    const row = this.row(lease.pair)
    if (row.leaseToken !== lease.token || row.leaseHolder === null) return false
    const overtaken = run.generation !== null && run.generation < row.generation
    row.state = overtaken ? 'lagging' : run.state
    row.reason = run.reason
    row.dueAtMs = overtaken ? null : run.dueAtMs
    row.request = overtaken ? row.request : requestAfter(row, run)
    row.reachedGeneration = Math.max(row.reachedGeneration, run.reachedGeneration ?? 0)
    row.leaseHolder = null
    this.#changeLedger(lease.pair, run)
    this.#keepLogins(run.logins.map((login) => ({ pair: lease.pair, login })))
    this.runs.push({ pair: lease.pair, run })
    return true
  }

  async distrust(pair: Pair, objects: readonly ObjectRef[]): Promise<void> {
    const row = this.row(pair)
    row.generation += 1
    row.dueAtMs = null
    for (const object of objects) if (object.kind === 'clientUsername') this.#amend(pair, object, { passwordDue: true })
  }

  async *settled(broker: BrokerKey): AsyncIterable<readonly RegistrationFacts[]> {
    const rows = this.#rowsOf(broker).filter((row) => isSettled(row) && (isWanted(row) || this.#hasObjects(row)))
    for (const chunk of chunks(rows, this.#chunkSize)) yield chunk.map((row) => this.#factsOf(row))
  }

  async *unsettled(broker: BrokerKey): AsyncIterable<readonly Pair[]> {
    const isDue = (row: MemoryPair): boolean => row.dueAtMs !== null && row.dueAtMs <= this.now()
    const rows = this.#rowsOf(broker).filter((row) => !isSettled(row) || isDue(row))
    for (const chunk of chunks(rows, this.#chunkSize)) yield chunk.map(({ pair }) => pair)
  }

  #rowsOf(broker: BrokerKey): readonly MemoryPair[] {
    return [...this.#pairs.values()].filter(({ pair }) => sameBroker(pair, broker))
  }

  #held(lease: Lease): MemoryPair | null {
    const row = this.#pairs.get(pairKey(lease.pair))
    const held = row?.leaseHolder !== null && row?.leaseToken === lease.token && row.leaseUntilMs > this.now()
    return held ? row : null
  }

  #ledgerKey(broker: BrokerKey, object: ObjectRef): string {
    return keyOf(broker.accountId, broker.brokerId, objectKey(object))
  }

  #hasObjects({ pair }: MemoryPair): boolean {
    return this.ledger(pair).some(({ registrationId }) => registrationId === pair.registrationId)
  }

  #factsOf(row: MemoryPair): RegistrationFacts {
    const { pair } = row
    const withObjects = isWanted(row) ? [] : this.#rowsOf(pair).filter((each) => this.#hasObjects(each))
    return {
      brokerId: pair.brokerId,
      registration: { ...row.registration, generation: row.generation },
      protocols: row.protocols,
      policy: this.policies.get(keyOf(pair.accountId, pair.brokerId)) ?? policyOf(),
      ledger: this.ledger(pair).filter(
        ({ registrationId }) => registrationId === null || registrationId === pair.registrationId,
      ),
      adoptions: row.adoptions,
      withdrawalConfirmed: row.withdrawalConfirmed,
      registrationsOnBroker: withObjects.length,
      withdrawnOnBroker: withObjects.filter((each) => !isWanted(each) && !each.withdrawalConfirmed).length,
    }
  }

  #changeLedger(pair: Pair, run: FinishedRun): void {
    for (const object of run.ledgerChanges.forget) {
      if (this.#isOf(pair, object)) this.#ledger.delete(this.#ledgerKey(pair, object))
    }
    for (const object of run.ledgerChanges.withdraw) this.#amend(pair, object, { withdrawnAtMs: run.finishedAtMs })
    for (const object of run.ledgerChanges.restore) this.#amend(pair, object, { withdrawnAtMs: null })
    const isOver = run.generation !== null && run.generation < this.row(pair).generation
    for (const confirmation of run.confirmations) {
      const { object, applied, credentialVersion, passwordWritten, passwordReapplied } = confirmation
      const refused = { refusedLogin: { credentialVersion: credentialVersion ?? 0, reapplied: true } }
      const cleared = { ...(passwordWritten && !isOver && { passwordDue: false }), ...(passwordReapplied && refused) }
      this.#amend(pair, object, { applied, confirmedCredentialVersion: credentialVersion, ...cleared })
    }
  }

  /** Nobody's of its own, or still this registration's. */
  #isOf(pair: Pair, object: ObjectRef): boolean {
    const owner = this.#ledger.get(this.#ledgerKey(pair, object))?.registrationId ?? null
    return owner === null || owner === pair.registrationId
  }

  #amend(pair: Pair, object: ObjectRef, changes: Partial<LedgerEntry>): void {
    const key = this.#ledgerKey(pair, object)
    const entry = this.#ledger.get(key)
    if (entry !== undefined && this.#isOf(pair, object)) this.#ledger.set(key, { ...entry, ...changes })
  }
}

const newPair = (pair: Pair, registration: RegistrationOnBroker): MemoryPair => ({
  pair,
  registration,
  protocols: ['smf'],
  adoptions: new Set(),
  generation: 0,
  reachedGeneration: 0,
  state: 'lagging',
  reason: null,
  dueAtMs: null,
  withdrawalConfirmed: false,
  attempts: 0,
  request: { state: 'APPROVED', reason: null },
  leaseHolder: null,
  leaseToken: 0,
  leaseUntilMs: 0,
})

/** How long an error must last where the generation was reached is left out: the clock of a test stands still. */
function requestAfter(
  row: MemoryPair,
  { state, reason, error, reachedGeneration }: FinishedRun,
): MemoryPair['request'] {
  const fails = state === 'error' && error !== null
  if (state !== 'lagging') row.attempts = fails ? row.attempts + 1 : 0
  const lasts = row.attempts >= 3 && row.reachedGeneration < row.generation
  const needsPerson = state === 'conflict' || state === 'refused' || (fails && (error.fate === 'stop' || lasts))
  if (needsPerson || (fails && row.request.state === 'ERROR')) {
    return { state: 'ERROR', reason: `Broker ${row.pair.brokerId}: ${reason}` }
  }
  const reached = Math.max(row.reachedGeneration, reachedGeneration ?? 0)
  if (reached >= row.generation && (state === 'in-sync' || state === 'held')) return { state: 'LIVE', reason: null }
  return row.request.state === 'ERROR' && state === 'held' ? { state: 'APPROVED', reason: null } : row.request
}

const isWanted = (row: MemoryPair): boolean => row.registration.accessRequests.length > 0
const isSettled = (row: MemoryPair): boolean => row.reachedGeneration === row.generation && row.state === 'in-sync'

/** What `put` stores as the secret of a credential: easy to look for where it must not be. */
export const secretText = ({ accountId }: Pick<Pair, 'accountId'>, consumerKey: string, version: number): string =>
  `s3cret/${accountId}/${consumerKey}/${version}`

function* chunks<Item>(items: readonly Item[], size: number): Iterable<readonly Item[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}
