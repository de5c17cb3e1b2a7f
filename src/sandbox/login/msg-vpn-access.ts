import type { ConnectedClient } from '../account-table.ts'
import type { BrokerModel } from '../broker-model.ts'
import type { StoredObject } from '../object-collection.ts'
import { ACL_PROFILES, CLIENT_PROFILES, CLIENT_USERNAMES, type ObjectTable } from '../object-tables.ts'
import { aclAllows, type Direction } from './topic-access.ts'

/** What a login comes to, whatever the protocol makes of it. */
export type AccessOutcome =
  | 'accepted'
  | 'unknown-username'
  | 'wrong-password'
  | 'shutdown'
  | 'msg-vpn-shutdown'
  | 'basic-authentication-shutdown'
  /** The ACL profile lets no client connect. */
  | 'connect-denied'
  /** The client profile's limit of connections is reached. */
  | 'too-many-connections'

/** One message VPN as its listeners see it: the same tables that the SEMP API writes. */
export class MsgVpnAccess {
  readonly name: string
  readonly #model: BrokerModel

  constructor(model: BrokerModel, name: string) {
    this.#model = model
    this.name = name
  }

  login(clientUsername: string, password: string): AccessOutcome {
    const msgVpn = this.#model.msgVpns.get(this.name)
    if (msgVpn?.values.enabled === true && msgVpn.values.authenticationBasicEnabled === false) {
      return 'basic-authentication-shutdown'
    }
    const outcome = this.#model.accounts(this.name).checkLogin(clientUsername, password)
    if (outcome !== 'accepted') return outcome
    if (
      this.#profileOf(clientUsername, 'aclProfileName', ACL_PROFILES)?.values.clientConnectDefaultAction !== 'allow'
    ) {
      return 'connect-denied'
    }
    return this.#isFull(clientUsername) ? 'too-many-connections' : 'accepted'
  }

  /** After an accepted login, until `disconnect`; `onDrop` when the broker throws the client out. */
  connect(clientUsername: string, onDrop: () => void): ConnectedClient {
    return this.#model.accounts(this.name).connect(clientUsername, { onDrop })
  }

  disconnect(client: ConnectedClient): void {
    this.#model.accounts(this.name).disconnect(client)
  }

  /** A topic to publish to, or a topic filter to subscribe to, in SMF syntax. */
  allows(clientUsername: string, direction: Direction, topic: string): boolean {
    const profile = this.#profileOf(clientUsername, 'aclProfileName', ACL_PROFILES)
    return profile !== undefined && aclAllows(profile, direction, topic)
  }

  #isFull(clientUsername: string): boolean {
    const profile = this.#profileOf(clientUsername, 'clientProfileName', CLIENT_PROFILES)
    const limit = Number(profile?.values.maxConnectionCountPerClientUsername ?? Number.POSITIVE_INFINITY)
    return this.#model.accounts(this.name).connectionsOf(clientUsername) >= limit
  }

  /** A message VPN without basic authentication lets in names that it does not know, with the reserved profiles. */
  #profileOf(clientUsername: string, attribute: string, table: ObjectTable): StoredObject | undefined {
    const account = this.#model.collection(this.name, CLIENT_USERNAMES)?.get(clientUsername)
    return this.#model.collection(this.name, table)?.get(String(account?.values[attribute] ?? 'default'))
  }
}
