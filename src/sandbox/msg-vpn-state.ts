import { Secret } from '../domain/secret.ts'
import type { AccountTable, ConnectedClient, ConnectOptions, LoginOutcome } from './account-table.ts'
import type { Values } from './attribute.ts'
import type { BrokerModel, QueueSpool } from './broker-model.ts'
import type { ObjectCollection, StoredObject } from './object-collection.ts'
import {
  ACL_PROFILES,
  CLIENT_PROFILES,
  CLIENT_USERNAMES,
  completeValues,
  type ObjectTable,
  QUEUES,
} from './object-tables.ts'

export type MemberCollection =
  | 'publishTopicExceptions'
  | 'subscribeTopicExceptions'
  | 'clientConnectExceptions'
  | 'subscribeShareNameExceptions'
  | 'subscriptions'
  | 'attributes'

/** Objects of one kind, read and changed behind the back of every SEMP client: nothing is checked, nothing counted. */
export class ObjectView {
  readonly #model: BrokerModel
  readonly #msgVpnName: string
  readonly #table: ObjectTable

  constructor(model: BrokerModel, msgVpnName: string, table: ObjectTable) {
    this.#model = model
    this.#msgVpnName = msgVpnName
    this.#table = table
  }

  get size(): number {
    return this.#collection().size
  }

  /** Sorted. */
  names(): string[] {
    return [...this.#collection().keys()].sort()
  }

  has(name: string): boolean {
    return this.#collection().get(name) !== undefined
  }

  /** All readable values, defaults included; undefined when absent. */
  get(name: string): Readonly<Values> | undefined {
    return this.#collection().get(name)?.values
  }

  /** Creates an object, or replaces it (children stay); what is not given takes its default. */
  put(name: string, values: Readonly<Values> = {}): void {
    const collection = this.#collection()
    const { password, ...readable } = values
    const complete = completeValues(this.#table, { ...readable, [this.#table.keys[0] ?? '']: name })
    const object = collection.get(name) ?? collection.add(name, complete)
    object.values = complete
    if (password !== undefined) object.secrets = { ...object.secrets, password: new Secret(String(password)) }
  }

  /** Sets only what is given. Throws when the object is absent. */
  change(name: string, values: Readonly<Values>): void {
    const object = this.#object(name)
    this.put(name, { ...object.values, ...values })
  }

  /** False when it was not there. */
  remove(name: string): boolean {
    return this.#collection().delete(name)
  }

  /** Sorted; `smf,a/b` for exceptions, the topic for subscriptions. */
  members(name: string, collection: MemberCollection): string[] {
    return [...(this.#object(name).children?.get(collection)?.keys() ?? [])].sort()
  }

  addMember(name: string, collection: MemberCollection, member: string): void {
    const table = this.#child(collection)
    const [first = '', ...rest] = table.keys.length === 1 ? [member] : member.split(',')
    const identity = table.keys.length === 1 ? [first] : [first, rest.join(',')]
    const values = Object.fromEntries(table.keys.map((keyName, index) => [keyName, identity[index] ?? '']))
    const holder = this.#model.childForWriting(this.#object(name), table)
    if (holder.get(member) === undefined) holder.add(member, completeValues(table, values))
  }

  removeMember(name: string, collection: MemberCollection, member: string): boolean {
    return this.#model.childOf(this.#object(name), this.#child(collection))?.delete(member) ?? false
  }

  #child(collection: MemberCollection): ObjectTable {
    const table = this.#table.childByCollection.get(collection)
    if (table === undefined) throw new Error(`${this.#table.collection} have no ${collection}`)
    return table
  }

  #collection(): ObjectCollection {
    const collection = this.#model.collection(this.#msgVpnName, this.#table)
    if (collection === undefined) throw new Error(`the message VPN ${this.#msgVpnName} is not on this broker`)
    return collection
  }

  #object(name: string): StoredObject {
    const object = this.#collection().get(name)
    if (object === undefined) throw new Error(`${this.#table.label} ${name} is not on this broker`)
    return object
  }
}

/** One message VPN as a test or the demo sees it. */
export class MsgVpnState {
  readonly name: string
  readonly clientUsernames: ObjectView
  readonly clientProfiles: ObjectView
  readonly aclProfiles: ObjectView
  readonly queues: ObjectView
  readonly accounts: AccountTable
  readonly #model: BrokerModel

  constructor(model: BrokerModel, name: string) {
    this.#model = model
    this.name = name
    this.clientUsernames = new ObjectView(model, name, CLIENT_USERNAMES)
    this.clientProfiles = new ObjectView(model, name, CLIENT_PROFILES)
    this.aclProfiles = new ObjectView(model, name, ACL_PROFILES)
    this.queues = new ObjectView(model, name, QUEUES)
    this.accounts = model.accounts(name)
  }

  /** The message VPN's own values; undefined after `removeMsgVpn`. */
  get values(): Readonly<Values> | undefined {
    return this.#model.msgVpns.get(this.name)?.values
  }

  changeMsgVpn(values: Readonly<Values>): void {
    const msgVpn = this.#model.msgVpns.get(this.name)
    if (msgVpn !== undefined) msgVpn.values = { ...msgVpn.values, ...values }
  }

  /** Every request below it then meets code 6, until `wipe`. */
  removeMsgVpn(): void {
    this.#model.msgVpns.delete(this.name)
  }

  /** Clear text, for assertions; null when the username is absent. */
  passwordOf(clientUsername: string): string | null {
    return this.accounts.passwordOf(clientUsername)
  }

  setPassword(clientUsername: string, password: string): void {
    this.clientUsernames.change(clientUsername, { password })
  }

  checkLogin(clientUsername: string, password: string): LoginOutcome {
    return this.accounts.checkLogin(clientUsername, password)
  }

  connect(clientUsername: string, options?: ConnectOptions): ConnectedClient {
    return this.accounts.connect(clientUsername, options)
  }

  /** Messages that wait in a queue, as the monitoring API tells them. */
  setQueued(queueName: string, spool: QueueSpool): void {
    this.#model.setSpool(this.name, queueName, spool)
  }
}
