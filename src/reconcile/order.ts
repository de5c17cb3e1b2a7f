import { type ObjectKind, objectKey } from '../domain/broker-object.ts'
import { type Action, actionRef } from './plan.ts'

/**
 * Order is data. Access that must end ends first; creations go from what is needed to what needs it; additions come
 * before removals, deletions last and the other way round. Actions of one level do not depend on each other.
 *
 *     0 disable withdrawn usernames
 *     1 client profiles   2 ACL profiles   3 their exceptions   4 client usernames   5 queues   6 subscriptions
 *     7 remove members    8 delete usernames   9 delete queues   10 delete ACL profiles
 */
export function level(action: Action): number {
  switch (action.type) {
    case 'create':
      return UPWARD[action.object.kind]
    case 'update':
      return action.reason === 'no-longer-wanted' ? 0 : UPWARD[action.kind]
    case 'set-password':
      return UPWARD.clientUsername
    case 'add-member':
      return UPWARD[action.kind] + 1
    case 'remove-member':
      return 7
    case 'delete':
      return DOWNWARD[action.kind]
    default: {
      const unreachable: never = action
      return unreachable
    }
  }
}

const UPWARD: Readonly<Record<ObjectKind, number>> = { clientProfile: 1, aclProfile: 2, clientUsername: 4, queue: 5 }
const DOWNWARD: Readonly<Record<ObjectKind, number>> = {
  clientUsername: 8,
  queue: 9,
  aclProfile: 10,
  clientProfile: 11,
}

/** Sorted by level, then by object and member, so that the order of the inputs never shows. */
export function order(actions: readonly Action[]): readonly Action[] {
  return actions
    .map((action) => ({ action, level: level(action), key: sortKey(action) }))
    .sort((a, b) => a.level - b.level || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map(({ action }) => action)
}

function sortKey(action: Action): string {
  const member = action.type === 'add-member' || action.type === 'remove-member' ? action : null
  return [objectKey(actionRef(action)), action.type, member?.memberKind ?? '', member?.member ?? ''].join('\n')
}
