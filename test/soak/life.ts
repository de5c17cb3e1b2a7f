import { topicsOf } from './catalogue.ts'
import { type Change, keyOf, type ObjectRecord, type Registration, type Version } from './life-facts.ts'
import { type Wanted, type WantedKind, wantedOf } from './wanted.ts'

/**
 * What should be true, from what was accepted so far. Reads no clock and no broker: the same changes at the same times
 * come to the same.
 */
export class Life {
  readonly #accountId: string
  readonly #registrations = new Map<string, Registration>()
  readonly #products = new Map<string, Map<string, Version>>()
  readonly #records: readonly Map<string, ObjectRecord>[]
  /** Keys of records, by broker and registration. */
  readonly #recordsOf = new Map<string, Set<string>>()
  /** Which client profile each registration uses, by broker. */
  readonly #profiles: readonly Map<string, string>[]
  readonly #squatted: readonly Set<string>[]
  readonly #expiring = new Map<string, { readonly registration: string; readonly atMs: number }>()

  constructor(accountId: string, brokers: number) {
    this.#accountId = accountId
    this.#records = Array.from({ length: brokers }, () => new Map())
    this.#profiles = Array.from({ length: brokers }, () => new Map())
    this.#squatted = Array.from({ length: brokers }, () => new Set())
  }

  get registrations(): ReadonlyMap<string, Registration> {
    return this.#registrations
  }

  get products(): ReadonlyMap<string, ReadonlyMap<string, Version>> {
    return this.#products
  }

  get brokers(): number {
    return this.#records.length
  }

  records(broker: number): ReadonlyMap<string, ObjectRecord> {
    return this.#records[broker] ?? new Map()
  }

  isSquatted(broker: number, key: string): boolean {
    return this.#squatted[broker]?.has(key) ?? false
  }

  /** The version that a new access request is for: the newest that is released, else none. */
  shownVersion(product: string): string | null {
    const released = [...(this.#products.get(product) ?? [])].filter(([, { state }]) => state === 'RELEASED')
    return released.map(([version]) => version).sort(byVersion)[0] ?? null
  }

  /** Where the registration has access, or had, by its records. */
  brokersOf(registration: string): readonly number[] {
    return [...this.#records.keys()].filter((broker) => this.#granted(registration, broker).length > 0)
  }

  apply(change: Change, atMs: number): void {
    for (const registration of this.#change(change)) this.#derive(registration, atMs)
    if (change.type === 'squat-gone') this.#begin(change.broker, change.registration, atMs)
  }

  /** Credentials end when their time is over, at the next look at them. */
  advance(wallMs: number, atMs: number, expiryMs: number): void {
    for (const [key, { registration, atMs: endsAtMs }] of this.#expiring) {
      if (endsAtMs > wallMs) continue
      this.#expiring.delete(key)
      this.#removeCredential(registration, key)
      this.#derive(registration, atMs + expiryMs)
    }
  }

  /** A hand changed, or removed, an object of ours. */
  byHand(
    broker: number,
    object: { readonly kind: string; readonly name: string },
    atMs: number,
    password = false,
  ): void {
    const records = this.#records[broker]
    const record = records?.get(keyOf(object))
    if (record === undefined) return
    const touched = password ? { passwordByHandAtMs: atMs } : { handAtMs: atMs }
    records?.set(keyOf(object), { ...record, ...touched })
  }

  /** The registrations whose objects may be others now. */
  #change(change: Change): readonly string[] {
    switch (change.type) {
      case 'registration': {
        const id = change.registration
        this.#registrations.set(id, { id, regions: null, credentials: new Map(), access: new Map() })
        return [id]
      }
      case 'registration-gone':
        for (const key of this.#registrations.get(change.registration)?.credentials.keys() ?? []) {
          this.#expiring.delete(key)
        }
        this.#registrations.delete(change.registration)
        return [change.registration]
      case 'regions':
        this.#edit(change.registration, () => ({ regions: change.regions }))
        return [change.registration]
      case 'credential': {
        const { registration, key, secret, expiresAtMs } = change
        this.#edit(registration, ({ credentials }) => ({
          credentials: new Map(credentials).set(key, { secret, expiresAtMs }),
        }))
        if (expiresAtMs === null) this.#expiring.delete(key)
        else this.#expiring.set(key, { registration, atMs: expiresAtMs })
        return [registration]
      }
      case 'credential-gone':
        this.#removeCredential(change.registration, change.key)
        return [change.registration]
      case 'access':
        this.#edit(change.registration, ({ access }) => ({ access: new Map(access).set(change.id, change.access) }))
        return [change.registration]
      case 'access-gone':
        this.#edit(change.registration, ({ access }) => {
          const left = new Map(access)
          left.delete(change.id)
          return { access: left }
        })
        return [change.registration]
      case 'version': {
        const versions = this.#products.get(change.product) ?? new Map<string, Version>()
        this.#products.set(change.product, versions.set(change.version, change.content))
        return [...this.#registrations.values()]
          .filter(({ access }) => [...access.values()].some(({ product }) => product === change.product))
          .map(({ id }) => id)
      }
      case 'squatted':
        this.#squatted[change.broker]?.add(change.key)
        return [change.registration]
      case 'squat-gone':
        this.#squatted[change.broker]?.delete(change.key)
        return [change.registration]
      default: {
        const unreachable: never = change
        return unreachable
      }
    }
  }

  #edit(id: string, change: (registration: Registration) => Partial<Registration>): void {
    const registration = this.#registrations.get(id)
    if (registration !== undefined) this.#registrations.set(id, { ...registration, ...change(registration) })
  }

  #removeCredential(registration: string, key: string): void {
    this.#expiring.delete(key)
    this.#edit(registration, ({ credentials }) => {
      const left = new Map(credentials)
      left.delete(key)
      return { credentials: left }
    })
  }

  #granted(id: string, broker: number) {
    const registration = this.#registrations.get(id)
    if (registration === undefined) return []
    return [...registration.access].flatMap(([accessRequestId, { product, version, plan, state }]) => {
      const found = this.#products.get(product)?.get(version)
      const policy = found?.plans[plan]
      if (found === undefined || policy === undefined || state !== 'APPROVED') return []
      if (found.state === 'RETIRED' || !found.brokers.includes(broker)) return []
      const eventApis = found.eventApis.map((api) => ({ id: api, topics: topicsOf(api, registration.regions) }))
      return [{ accessRequestId, policy, eventApis }]
    })
  }

  #derive(registration: string, atMs: number): void {
    for (const broker of this.#records.keys()) this.#deriveOn(broker, registration, atMs)
  }

  #deriveOn(broker: number, registration: string, atMs: number): void {
    const granted = this.#granted(registration, broker)
    const place = `${broker}/${registration}`
    const known = this.#recordsOf.get(place)
    if (granted.length === 0 && known === undefined) return
    const live = [...(this.#registrations.get(registration)?.credentials ?? [])]
    const credentials = live
      .filter(([key]) => !this.isSquatted(broker, key))
      .map(([key, { secret }]) => ({ key, secret }))
    const isSquatted = credentials.length < live.length
    const client = { accountId: this.#accountId, registrationId: registration, granted, credentials }
    const wanted = wantedOf(client).map((each) => (isSquatted && each.kind === 'queue' ? withoutOwner(each) : each))
    const keys = known ?? new Set()
    this.#recordsOf.set(place, keys)
    const left = new Set(keys)
    this.#useProfile(broker, registration, wanted.find(({ kind }) => kind === 'clientProfile') ?? null, atMs)
    for (const each of wanted) {
      if (each.kind === 'clientProfile') continue
      this.#put(broker, { object: each, registration, wanted: each, atMs })
      keys.add(keyOf(each))
      left.delete(keyOf(each))
    }
    for (const key of left) {
      const record = this.#records[broker]?.get(key)
      if (record !== undefined) this.#put(broker, { object: record, registration, wanted: null, atMs })
    }
  }

  /** One that nobody uses stays, and nobody looks after it. */
  #useProfile(broker: number, registration: string, profile: Wanted | null, atMs: number): void {
    const profiles = this.#profiles[broker]
    const before = profiles?.get(registration)
    if (profiles === undefined || before === profile?.name) return
    if (profile === null) profiles.delete(registration)
    else {
      profiles.set(registration, profile.name)
      this.#put(broker, { object: profile, registration: null, wanted: profile, atMs })
    }
    if (before === undefined || [...profiles.values()].includes(before)) return
    this.#put(broker, { object: { kind: 'clientProfile', name: before }, registration: null, wanted: null, atMs })
  }

  #put(
    broker: number,
    put: {
      readonly object: { readonly kind: WantedKind; readonly name: string }
      readonly registration: string | null
      readonly wanted: Wanted | null
      readonly atMs: number
    },
  ): void {
    const { object, registration, wanted, atMs } = put
    const key = keyOf(object)
    const before = this.#records[broker]?.get(key)
    if (before !== undefined && JSON.stringify(before.wanted) === JSON.stringify(wanted)) return
    const hasTurned = before === undefined || (before.wanted === null) !== (wanted === null)
    this.#records[broker]?.set(key, {
      kind: object.kind,
      name: object.name,
      registration,
      wanted,
      sinceMs: atMs,
      turnedMs: hasTurned ? atMs : before.turnedMs,
      handAtMs: before?.handAtMs ?? null,
      passwordByHandAtMs: before?.passwordByHandAtMs ?? null,
    })
  }

  /** Only now can the registration's work on the broker be finished. */
  #begin(broker: number, registration: string, atMs: number): void {
    for (const key of this.#recordsOf.get(`${broker}/${registration}`) ?? []) {
      const record = this.#records[broker]?.get(key)
      if (record !== undefined) this.#records[broker]?.set(key, { ...record, sinceMs: Math.max(record.sinceMs, atMs) })
    }
  }
}

/** Its owner may be the one whose name is taken, and then nothing of it is done. */
function withoutOwner({ owners: _owners, ...queue }: Wanted): Wanted {
  return { ...queue, optional: true }
}

/** Newest first. */
function byVersion(a: string, b: string): number {
  const [one, other] = [a, b].map((version) => version.split('.').map(Number))
  for (const [index, number] of (one ?? []).entries()) {
    const difference = (other?.[index] ?? 0) - number
    if (difference !== 0) return difference
  }
  return 0
}
