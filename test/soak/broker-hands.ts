import type { LoginOutcome } from '../../src/sandbox/account-table.ts'
import type { MemberCollection, ObjectView } from '../../src/sandbox/msg-vpn-state.ts'
import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import type { ReadBroker } from './differences.ts'
import type { ObjectRecord } from './life-facts.ts'
import { type Picks, pick } from './steps.ts'
import type { WantedKind } from './wanted.ts'

/** An object, with all that is known of it, as text that can be compared. */
type Snapshot = string

const NO_MEMBERS: Readonly<Record<WantedKind, readonly MemberCollection[]>> = {
  clientUsername: ['attributes'],
  aclProfile: [
    'publishTopicExceptions',
    'subscribeTopicExceptions',
    'clientConnectExceptions',
    'subscribeShareNameExceptions',
  ],
  clientProfile: [],
  queue: ['subscriptions'],
}

/** What people do on a simulated broker by hand, and what others have on it. */
export class BrokerHands implements ReadBroker {
  readonly broker: SandboxBroker
  /** By kind and name, as the hand that made it, or changed it, left it. */
  readonly #foreign = new Map<string, { readonly kind: WantedKind; readonly name: string; snapshot: Snapshot }>()

  constructor(broker: SandboxBroker) {
    this.broker = broker
  }

  names(kind: WantedKind): readonly string[] {
    return this.#view(kind).names()
  }

  attributes(kind: WantedKind, name: string): Readonly<Record<string, unknown>> | undefined {
    return this.#view(kind).get(name)
  }

  members(kind: WantedKind, name: string, collection: string): readonly string[] {
    return this.#view(kind).members(name, collection as MemberCollection)
  }

  login(clientUsername: string, password: string): LoginOutcome {
    return this.broker.state.checkLogin(clientUsername, password)
  }

  isForeign(kind: WantedKind, name: string): boolean {
    return this.#foreign.has(`${kind}/${name}`)
  }

  /** Foreign objects that are not as their owner left them. */
  touchedForeign(): readonly string[] {
    return [...this.#foreign].flatMap(([key, { kind, name, snapshot }]) =>
      this.#snapshot(kind, name) === snapshot ? [] : [key],
    )
  }

  /** What somebody else has there from the beginning; some of it looks like ours. */
  settleOthers(): void {
    const { clientUsernames, aclProfiles, clientProfiles, queues } = this.broker.state
    clientProfiles.put('legacy-profile', { allowGuaranteedMsgReceiveEnabled: true })
    aclProfiles.put('legacy-acl', { clientConnectDefaultAction: 'allow' })
    aclProfiles.addMember('legacy-acl', 'publishTopicExceptions', 'smf,legacy/>')
    const username = { enabled: true, aclProfileName: 'legacy-acl', clientProfileName: 'legacy-profile' }
    clientUsernames.put('legacy-client', { ...username, password: 'the-password-of-a-legacy-client' })
    clientUsernames.put('legacy-disabled', { ...username, enabled: false, password: 'another-password' })
    queues.put('legacy/queue', { owner: 'legacy-client', egressEnabled: true, ingressEnabled: true })
    queues.addMember('legacy/queue', 'subscriptions', 'legacy/>')
    queues.put('keymesh-abcdefghijklmnopqrstuvwxyz', { owner: 'legacy-client' })
    for (const [kind, name] of OTHERS) this.#keep(kind, name)
  }

  /** Whoever owns a foreign object changes it, or makes one and removes it again. */
  changeForeign(picks: Picks): string {
    const { clientUsernames, queues, aclProfiles } = this.broker.state
    if (picks[1] < 0.25) {
      clientUsernames.change('legacy-client', { password: `changed-${Math.floor(picks[2] * 1e9)}` })
      return this.#keep('clientUsername', 'legacy-client')
    }
    if (picks[1] < 0.5) {
      queues.change('legacy/queue', { maxMsgSpoolUsage: Math.floor(picks[2] * 1000) })
      return this.#keep('queue', 'legacy/queue')
    }
    if (picks[1] < 0.75) {
      aclProfiles.addMember('legacy-acl', 'publishTopicExceptions', `smf,legacy/${Math.floor(picks[2] * 100)}`)
      return this.#keep('aclProfile', 'legacy-acl')
    }
    const name = `legacy-guest-${Math.floor(picks[2] * 5)}`
    if (!this.isForeign('clientUsername', name)) return this.squat(name)
    this.leave(name)
    return `clientUsername/${name} removed`
  }

  /** A foreign client username of this name. */
  squat(name: string): string {
    this.broker.state.clientUsernames.put(name, { enabled: true, password: `password-of-${name}` })
    return this.#keep('clientUsername', name)
  }

  leave(name: string): void {
    this.#foreign.delete(`clientUsername/${name}`)
    this.broker.state.clientUsernames.remove(name)
  }

  /** Also one that is not wanted. */
  isThere({ kind, name }: Pick<ObjectRecord, 'kind' | 'name'>): boolean {
    return this.#view(kind).has(name)
  }

  delete({ kind, name }: Pick<ObjectRecord, 'kind' | 'name'>): string {
    this.#view(kind).remove(name)
    return 'deleted'
  }

  /** A broker lets go of a profile only when no enabled client username uses it: a hand gives those another one first. */
  freeProfile({ kind, name }: Pick<ObjectRecord, 'kind' | 'name'>): readonly string[] {
    const attribute = PROFILE_ATTRIBUTES[kind]
    if (attribute === undefined) return []
    const { clientUsernames } = this.broker.state
    const users = clientUsernames.names().filter((username) => clientUsernames.get(username)?.[attribute] === name)
    for (const username of users) clientUsernames.change(username, { [attribute]: 'default' })
    return users
  }

  changeAttribute({ kind, name }: Pick<ObjectRecord, 'kind' | 'name'>, picks: Picks): string {
    const values = pick(CHANGES[kind], picks[2])
    const before = this.#view(kind).get(name) ?? {}
    const changed = Object.fromEntries(
      Object.entries(values).map(([attribute, value]) => [
        attribute,
        before[attribute] === value ? (OTHERWISE[attribute] ?? value) : value,
      ]),
    )
    this.#view(kind).change(name, changed)
    return JSON.stringify(changed)
  }

  changeMembers({ kind, name }: Pick<ObjectRecord, 'kind' | 'name'>, picks: Picks): string {
    const view = this.#view(kind)
    const collection =
      kind === 'queue'
        ? 'subscriptions'
        : pick(['publishTopicExceptions', 'subscribeTopicExceptions'] as const, picks[2])
    const there = view.members(name, collection)
    if (picks[3] < 0.5 && there.length > 0) {
      const member = pick(there, picks[3] * 2)
      view.removeMember(name, collection, member)
      return `removed ${member} of ${collection}`
    }
    const topic = `payroll/${Math.floor(picks[3] * 100)}`
    const member = kind === 'queue' ? topic : `${picks[3] < 0.8 ? 'smf' : 'mqtt'},${topic}`
    view.addMember(name, collection, member)
    return `added ${member} to ${collection}`
  }

  changePassword(name: string, number: number): string {
    this.broker.state.setPassword(name, `set-by-hand-in-step-${number}`)
    return 'another password'
  }

  enable(name: string): string {
    this.broker.state.clientUsernames.change(name, { enabled: true })
    return 'enabled again'
  }

  /** Objects as the service could see them, for a search of what should not be there. */
  readable(): string {
    return KINDS.flatMap((kind) => this.names(kind).map((name) => JSON.stringify(this.attributes(kind, name)))).join(
      '\n',
    )
  }

  #keep(kind: WantedKind, name: string): string {
    const key = `${kind}/${name}`
    this.#foreign.set(key, { kind, name, snapshot: this.#snapshot(kind, name) })
    return key
  }

  #snapshot(kind: WantedKind, name: string): Snapshot {
    const view = this.#view(kind)
    if (!view.has(name)) return 'absent'
    const members = NO_MEMBERS[kind].map((collection) => view.members(name, collection))
    const password = kind === 'clientUsername' ? this.broker.state.passwordOf(name) : null
    return JSON.stringify([view.get(name), members, password])
  }

  #view(kind: WantedKind): ObjectView {
    const { clientUsernames, aclProfiles, clientProfiles, queues } = this.broker.state
    switch (kind) {
      case 'clientUsername':
        return clientUsernames
      case 'aclProfile':
        return aclProfiles
      case 'clientProfile':
        return clientProfiles
      case 'queue':
        return queues
      default: {
        const unreachable: never = kind
        return unreachable
      }
    }
  }
}

const KINDS: readonly WantedKind[] = ['clientUsername', 'aclProfile', 'clientProfile', 'queue']

const PROFILE_ATTRIBUTES: Readonly<Partial<Record<WantedKind, 'aclProfileName' | 'clientProfileName'>>> = {
  aclProfile: 'aclProfileName',
  clientProfile: 'clientProfileName',
}

const OTHERS: readonly (readonly [WantedKind, string])[] = [
  ['clientProfile', 'legacy-profile'],
  ['aclProfile', 'legacy-acl'],
  ['clientUsername', 'legacy-client'],
  ['clientUsername', 'legacy-disabled'],
  ['queue', 'legacy/queue'],
  ['queue', 'keymesh-abcdefghijklmnopqrstuvwxyz'],
]

type Values = Readonly<Record<string, string | number | boolean>>

const CHANGES: Readonly<Record<WantedKind, readonly Values[]>> = {
  clientUsername: [
    { enabled: false },
    { enabled: false },
    { aclProfileName: 'default' },
    { clientProfileName: 'default' },
    { guaranteedEndpointPermissionOverrideEnabled: true },
    { subscriptionManagerEnabled: true },
  ],
  aclProfile: [
    { publishTopicDefaultAction: 'allow' },
    { subscribeTopicDefaultAction: 'allow' },
    { clientConnectDefaultAction: 'disallow' },
  ],
  clientProfile: [{ allowTransactedSessionsEnabled: true }, { allowBridgeConnectionsEnabled: true }],
  queue: [
    { egressEnabled: false },
    { ingressEnabled: false },
    { owner: 'legacy-client' },
    { permission: 'consume' },
    { maxMsgSpoolUsage: 1 },
    { maxTtl: 7, respectTtlEnabled: false },
    { accessType: 'exclusive' },
  ],
}

/** For an attribute that has the value already. */
const OTHERWISE: Values = {
  allowTransactedSessionsEnabled: false,
  accessType: 'non-exclusive',
  maxMsgSpoolUsage: 2,
  maxTtl: 8,
}
