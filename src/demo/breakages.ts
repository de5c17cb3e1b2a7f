import type { Sandbox } from '../sandbox/sandbox.ts'
import type { SandboxBroker } from '../sandbox/sandbox-broker.ts'
import { LEGACY_USERNAME } from './demo-catalogue.ts'

/** Something that a person did on a broker behind Keymesh's back. */
export interface Breakage {
  readonly broker: string
  readonly what: string
  /** True when the broker is again as it was before. */
  readonly repaired: () => boolean
}

/**
 * Breaks each broker in another way, and changes the passwords of these client usernames on the last. The names are those
 * of the sample catalogue.
 */
export function breakBrokers(
  sandbox: Sandbox,
  names: readonly string[],
  usernames: readonly string[],
): readonly Breakage[] {
  const [north = '', central = '', south = ''] = names
  return [
    deletedUsername(sandbox.broker(0), north),
    changedException(sandbox.broker(1), central),
    disabledQueue(sandbox.broker(2), south),
    ...changedPasswords(sandbox.broker(2), south, usernames),
  ]
}

/** The broker never tells a password: only a login shows that somebody changed it. */
function changedPasswords({ state }: SandboxBroker, broker: string, usernames: readonly string[]): readonly Breakage[] {
  return usernames.map((name) => {
    const password = state.passwordOf(name)
    state.setPassword(name, 'changed-by-hand')
    return {
      broker,
      what: `changed the password of client username ${name}`,
      repaired: () => state.passwordOf(name) === password,
    }
  })
}

function deletedUsername({ state }: SandboxBroker, broker: string): Breakage {
  const name = 'northern-boards-01'
  const password = state.passwordOf(name)
  state.clientUsernames.remove(name)
  return {
    broker,
    what: `deleted the client username ${name}`,
    repaired: () => state.clientUsernames.get(name)?.enabled === true && state.passwordOf(name) === password,
  }
}

function changedException({ state }: SandboxBroker, broker: string): Breakage {
  const profile = 'crew-app-harbour'
  const collection = 'subscribeTopicExceptions'
  const before = state.aclProfiles.members(profile, collection).sort()
  const [first = ''] = before
  state.aclProfiles.removeMember(profile, collection, first)
  state.aclProfiles.addMember(profile, collection, 'smf,>')
  return {
    broker,
    what: `replaced a subscribe exception of ACL profile ${profile} by one that allows every topic`,
    repaired: () => state.aclProfiles.members(profile, collection).sort().join() === before.join(),
  }
}

function disabledQueue({ state }: SandboxBroker, broker: string): Breakage {
  const [queue = ''] = state.queues
    .names()
    .filter((name) => name.startsWith('keymesh-'))
    .sort()
  state.queues.change(queue, { egressEnabled: false })
  return {
    broker,
    what: `switched off the egress of queue ${queue}`,
    repaired: () => state.queues.get(queue)?.egressEnabled === true,
  }
}

/** A client of somebody else, with a name that a registration will want. */
export function addForeignClient(broker: SandboxBroker): { readonly untouched: () => boolean } {
  const password = 'not-ours'
  broker.state.clientUsernames.put(LEGACY_USERNAME, { enabled: true })
  broker.state.setPassword(LEGACY_USERNAME, password)
  const before = JSON.stringify(broker.state.clientUsernames.get(LEGACY_USERNAME))
  return {
    untouched: () =>
      JSON.stringify(broker.state.clientUsernames.get(LEGACY_USERNAME)) === before &&
      broker.state.passwordOf(LEGACY_USERNAME) === password,
  }
}
