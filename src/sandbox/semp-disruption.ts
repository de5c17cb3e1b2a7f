import type { AccountTable } from './account-table.ts'
import type { Values } from './attribute.ts'
import type { BrokerModel } from './broker-model.ts'
import { CLIENT_USERNAMES, MSG_VPNS, type ObjectTable, QUEUES } from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'

/** What SEMP 2.30 and older refuse to change while the named flags are on (`Requires-Disable`). */
const REQUIRES_DISABLE = new Map<ObjectTable, Readonly<Record<string, readonly string[]>>>([
  [CLIENT_USERNAMES, { aclProfileName: ['enabled'], clientProfileName: ['enabled'] }],
  [
    QUEUES,
    {
      accessType: ['egressEnabled'],
      owner: ['egressEnabled'],
      permission: ['egressEnabled'],
      respectMsgPriorityEnabled: ['egressEnabled', 'ingressEnabled'],
    },
  ],
])

export interface Change {
  readonly table: ObjectTable
  readonly method: string
  readonly before: Readonly<Values>
  readonly after: Readonly<Values>
}

/** Throws `NOT_ALLOWED` when an old broker wants the object disabled first. */
export function checkRequiresDisable(model: BrokerModel, change: Change): void {
  if (!model.requiresDisable) return
  for (const [name, flags] of Object.entries(REQUIRES_DISABLE.get(change.table) ?? {})) {
    const live = flags.filter((flagName) => change.before[flagName] === true)
    if (change.before[name] !== change.after[name] && live.length > 0) {
      throw new SempFailure(
        'NOT_ALLOWED',
        `Problem with ${change.method}: Cannot change "${name}" of the ${change.table.label} while ${live.join(', ')} is true.`,
      )
    }
  }
}

/** Disconnects whom the change disturbs: a flag that goes off, or one that Auto-Disable switches off for a moment. */
export function dropDisturbed(accounts: AccountTable, change: Change): void {
  const goesDown = (flagName: string) =>
    change.before[flagName] === true &&
    (change.after[flagName] === false ||
      change.table.autoDisabled.some(
        ([name, flags]) => flags.includes(flagName) && change.before[name] !== change.after[name],
      ))
  switch (change.table) {
    case MSG_VPNS:
      if (goesDown('enabled')) accounts.dropClients(null)
      return
    case CLIENT_USERNAMES:
      if (goesDown('enabled')) accounts.dropClients(String(change.before.clientUsername))
      return
    case QUEUES:
      if (goesDown('egressEnabled')) accounts.dropConsumers(String(change.before.queueName))
  }
}
