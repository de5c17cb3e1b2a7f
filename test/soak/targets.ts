import type { Life } from './life.ts'
import type { Access, Change, Registration, Version } from './life-facts.ts'
import { type Picks, pick, type Step } from './steps.ts'

/** A request to the API, and what is true once it is accepted. */
export interface Call {
  readonly method: 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
  /** Null: nothing that a broker has to know. */
  readonly change: Change | null
}

/** Null: there is nothing that it could be done to. */
export type Calls = readonly Call[] | null

export interface CallSettings {
  /** How many there should be. */
  readonly registrations: number
  /** In the beginning of every secret, so that a leak is seen. */
  readonly marker: string
  /** Epoch milliseconds, now. */
  readonly wallMs: number
  /** When a credential with a short life ends. */
  readonly expiresInMs: readonly [shortest: number, longest: number]
}

export interface FoundCredential {
  readonly registration: string
  readonly key: string
  readonly secret: string
  readonly expiresAtMs: number | null
}

export interface FoundRequest {
  readonly registration: string
  readonly id: string
  readonly access: Access
}

export interface FoundVersion {
  readonly product: string
  readonly version: string
  readonly content: Version
}

/** One that ends within this time may end while it is worked on. */
const SOON_MS = 20_000

/** What a step is done to: its picks choose among what there is. */
export class Targets {
  readonly life: Life
  readonly settings: CallSettings
  readonly number: number
  readonly picks: Picks

  constructor({ number, picks }: Pick<Step, 'number' | 'picks'>, life: Life, settings: CallSettings) {
    this.number = number
    this.picks = picks
    this.life = life
    this.settings = settings
  }

  registration(filter: (registration: Registration) => boolean = () => true): Registration | null {
    return this.#one([...this.life.registrations.values()].filter(filter))
  }

  request(filter: (access: Access) => boolean = () => true): FoundRequest | null {
    const found = [...this.life.registrations.values()].flatMap(({ id: registration, access: requests }) =>
      [...requests].flatMap(([id, access]) => (filter(access) ? [{ registration, id, access }] : [])),
    )
    return this.#one(found)
  }

  /** None that may end while it is worked on. */
  credential(): FoundCredential | null {
    const soonMs = this.settings.wallMs + SOON_MS
    const found = [...this.life.registrations.values()].flatMap(({ id: registration, credentials }) =>
      [...credentials].flatMap(([key, { secret, expiresAtMs }]) =>
        expiresAtMs !== null && expiresAtMs < soonMs ? [] : [{ registration, key, secret, expiresAtMs }],
      ),
    )
    return this.#one(found)
  }

  /** Of those that are not retired. */
  version(filter: (found: FoundVersion) => boolean = () => true): FoundVersion | null {
    const found = [...this.life.products].flatMap(([product, versions]) =>
      [...versions].map(([version, content]) => ({ product, version, content })),
    )
    return this.#one(found.filter((each) => each.content.state !== 'RETIRED' && filter(each)))
  }

  newSecret(): string {
    const tail = this.picks.map((fraction) => Math.floor(fraction * 2 ** 24).toString(36)).join('_')
    return `${this.settings.marker}${this.number}_${tail}`.slice(0, LONGEST_SECRET)
  }

  #one<Item>(items: readonly Item[]): Item | null {
    return items.length === 0 ? null : pick(items, this.picks[0])
  }
}

const LONGEST_SECRET = 64
