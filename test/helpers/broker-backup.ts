import type { MemberCollection, MsgVpnState, ObjectView } from '../../src/sandbox/msg-vpn-state.ts'

/** All objects of a message VPN with their members and passwords, as a backup of a broker holds them. */
export type BrokerBackup = readonly KindBackup[]

interface KindBackup {
  readonly kind: Kind
  readonly objects: ReadonlyMap<string, ObjectBackup>
}

interface ObjectBackup {
  readonly values: Parameters<ObjectView['put']>[1]
  readonly members: ReadonlyMap<MemberCollection, readonly string[]>
}

const MEMBERS = {
  clientProfiles: [],
  aclProfiles: ['publishTopicExceptions', 'subscribeTopicExceptions'],
  clientUsernames: [],
  queues: ['subscriptions'],
} as const satisfies Record<string, readonly MemberCollection[]>
type Kind = keyof typeof MEMBERS
const KINDS = Object.keys(MEMBERS) as readonly Kind[]

export function backUp(state: MsgVpnState): BrokerBackup {
  return KINDS.map((kind) => {
    const view = state[kind]
    const objects = view.names().map((name): readonly [string, ObjectBackup] => {
      const password = kind === 'clientUsernames' ? state.passwordOf(name) : null
      const members = MEMBERS[kind].map((members) => [members, view.members(name, members)] as const)
      return [name, { values: { ...view.get(name), ...(password && { password }) }, members: new Map(members) }]
    })
    return { kind, objects: new Map(objects) }
  })
}

/** As the broker was then: what came since is gone. */
export function restore(state: MsgVpnState, backup: BrokerBackup): void {
  for (const { kind, objects } of backup) {
    const view = state[kind]
    for (const name of view.names()) if (!objects.has(name)) view.remove(name)
    for (const [name, { values, members }] of objects) {
      view.put(name, values)
      for (const [collection, wanted] of members) {
        for (const member of view.members(name, collection)) view.removeMember(name, collection, member)
        for (const member of wanted) view.addMember(name, collection, member)
      }
    }
  }
}
