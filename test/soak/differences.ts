import type { LoginOutcome } from '../../src/sandbox/account-table.ts'
import type { Life } from './life.ts'
import { keyOf, type ObjectRecord } from './life-facts.ts'
import type { Bounds } from './settings.ts'
import type { Wanted, WantedKind } from './wanted.ts'

/** What a check reads of a broker, past the service. */
export interface ReadBroker {
  names(kind: WantedKind): readonly string[]
  /** Undefined when the object is absent. */
  attributes(kind: WantedKind, name: string): Readonly<Record<string, unknown>> | undefined
  members(kind: WantedKind, name: string, collection: string): readonly string[]
  login(clientUsername: string, password: string): LoginOutcome
  /** Objects that were never ours, as hands left them. */
  isForeign(kind: WantedKind, name: string): boolean
}

export interface Difference {
  readonly broker: number
  /** Such as `queue/keymesh-…`. */
  readonly object: string
  readonly registration: string | null
  readonly what: string
  readonly sinceMs: number
  /** From `sinceMs`, how long it may be so. */
  readonly boundMs: number
}

type Found = Omit<Difference, 'broker' | 'object' | 'registration'>

/** Everything on a broker that is not as the life asks for it, however new. Holds no secret. */
export function differencesOn(life: Life, broker: number, read: ReadBroker, bounds: Bounds): readonly Difference[] {
  const ours = [...life.records(broker).values()].flatMap((record) => differencesOf(life, broker, record, read, bounds))
  const records = life.records(broker)
  const unknown = KINDS.flatMap((kind) =>
    read
      .names(kind)
      .filter((name) => !isReserved(name) && !records.has(keyOf({ kind, name })) && !read.isForeign(kind, name))
      .map((name): Difference => {
        const object = keyOf({ kind, name })
        return { broker, object, registration: null, what: 'nobody asked for it', sinceMs: 0, boundMs: 0 }
      }),
  )
  return [...ours, ...unknown]
}

const KINDS: readonly WantedKind[] = ['clientUsername', 'aclProfile', 'clientProfile', 'queue']
/** Of the broker itself. */
const isReserved = (name: string): boolean => name === 'default' || name.startsWith('#')

export function differencesOf(
  life: Life,
  broker: number,
  record: ObjectRecord,
  read: ReadBroker,
  bounds: Bounds,
): readonly Difference[] {
  const { kind, name, wanted, registration } = record
  if (kind === 'clientUsername' && life.isSquatted(broker, name)) return []
  const found = wanted === null ? leftOver(record, read, bounds) : deviations(record, wanted, read, bounds)
  return found.map((each) => ({ broker, object: keyOf(record), registration, ...each }))
}

function leftOver(
  { kind, name, sinceMs, handAtMs }: ObjectRecord,
  read: ReadBroker,
  { changeMs, driftMs, graceMs }: Bounds,
): readonly Found[] {
  const attributes = kind === 'clientProfile' ? undefined : read.attributes(kind, name)
  if (attributes === undefined) return []
  const there = {
    what: 'is there, though nobody has a right to it any more',
    sinceMs,
    boundMs: changeMs + graceMs + driftMs,
  }
  if (kind !== 'clientUsername' || attributes.enabled === false) return [there]
  const since = Math.max(sinceMs, handAtMs ?? 0)
  return [
    there,
    { what: 'is enabled, though it was withdrawn', sinceMs: since, boundMs: boundOf(handAtMs, changeMs, driftMs) },
  ]
}

const boundOf = (handAtMs: number | null, changeMs: number, driftMs: number): number =>
  handAtMs === null ? changeMs : driftMs

function deviations(record: ObjectRecord, wanted: Wanted, read: ReadBroker, bounds: Bounds): readonly Found[] {
  const { kind, name, sinceMs, handAtMs, passwordByHandAtMs } = record
  const { changeMs, driftMs, passwordMs } = bounds
  const attributes = read.attributes(kind, name)
  const found = (what: string): Found => ({
    what,
    sinceMs: Math.max(sinceMs, handAtMs ?? 0),
    boundMs: boundOf(handAtMs, changeMs, driftMs),
  })
  if (attributes === undefined) return wanted.optional ? [] : [found('is missing')]
  const changed = Object.entries(wanted.attributes)
    .filter(([attribute, value]) => attributes[attribute] !== value)
    .map(([attribute, value]) => found(`${attribute} is ${attributes[attribute]} and not ${value}`))
  const owner =
    wanted.owners === undefined || wanted.owners.includes(String(attributes.owner))
      ? []
      : [found(`its owner is ${attributes.owner} and none of ${wanted.owners.join(', ')}`)]
  const members = Object.entries(wanted.members).flatMap(([collection, list]) => {
    const there = read.members(kind, name, collection)
    const missing = list.filter((member) => !there.includes(member))
    const more = there.filter((member) => !list.includes(member))
    if (missing.length + more.length === 0) return []
    return [
      found(
        `its ${collection} lack ${missing.join(', ') || 'nothing'} and have ${more.join(', ') || 'nothing'} too much`,
      ),
    ]
  })
  const outcome = wanted.secret === undefined ? 'accepted' : read.login(name, wanted.secret)
  // The others show as attributes.
  const isWrong = outcome === 'wrong-password'
  const password: Found = {
    what: 'its password is not the stored one',
    sinceMs: Math.max(sinceMs, handAtMs ?? 0, passwordByHandAtMs ?? 0),
    boundMs: passwordByHandAtMs === null ? boundOf(handAtMs, changeMs, driftMs) : passwordMs,
  }
  return [...changed, ...owner, ...members, ...(isWrong ? [password] : [])]
}
