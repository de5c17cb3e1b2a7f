import { AccountTable } from './account-table.ts'
import type { Scope, Values } from './attribute.ts'
import { ObjectCollection, type StoredObject } from './object-collection.ts'
import {
  ACL_PROFILES,
  CLIENT_PROFILES,
  CLIENT_USERNAMES,
  completeValues,
  MSG_VPNS,
  type ObjectTable,
} from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'
import type { PagingOptions } from './semp-paging.ts'
import type { PathStep } from './semp-path.ts'

export interface BrokerModelOptions {
  readonly seed: number
  /** `major.minor`; 2.30 and older refuse what newer brokers do by Auto-Disable. */
  readonly sempVersion: string
  readonly msgVpnNames: readonly string[]
  /** Over the defaults of this sandbox: enabled, basic authentication, internal. */
  readonly msgVpnValues: Readonly<Values>
  /** `vpn`: an administrator of the message VPN only, as on a cloud service. */
  readonly sempScope: 'vpn' | 'global' | 'read-only'
  readonly paging: PagingOptions
}

export interface QueueSpool {
  readonly messages: number
  readonly bytes: number
}

/** The objects that a new message VPN has and that cannot be deleted. */
export const RESERVED_NAME = 'default'

const RESERVED: readonly (readonly [ObjectTable, Values])[] = [
  [
    ACL_PROFILES,
    {
      aclProfileName: RESERVED_NAME,
      clientConnectDefaultAction: 'allow',
      publishTopicDefaultAction: 'allow',
      subscribeTopicDefaultAction: 'allow',
    },
  ],
  [CLIENT_PROFILES, { clientProfileName: RESERVED_NAME }],
  [CLIENT_USERNAMES, { clientUsername: RESERVED_NAME, enabled: true }],
]

const compareVersions = (left: string, right: string): number => {
  const [leftMajor = 0, leftMinor = 0] = left.split('.').map(Number)
  const [rightMajor = 0, rightMinor = 0] = right.split('.').map(Number)
  return leftMajor - rightMajor || leftMinor - rightMinor
}

/** Everything one simulated broker holds. */
export class BrokerModel {
  readonly options: BrokerModelOptions
  readonly requiresDisable: boolean
  readonly msgVpns: ObjectCollection
  readonly #accounts = new Map<string, AccountTable>()
  readonly #spools = new Map<string, QueueSpool>()

  constructor(options: BrokerModelOptions) {
    this.options = options
    this.requiresDisable = compareVersions(options.sempVersion, '2.30') <= 0
    this.msgVpns = new ObjectCollection(MSG_VPNS, options.seed)
    this.reset()
  }

  /** Back to message VPNs that hold the reserved objects alone. */
  reset(): void {
    this.msgVpns.clear()
    this.#spools.clear()
    for (const accounts of this.#accounts.values()) accounts.dropClients(null)
    for (const msgVpnName of this.options.msgVpnNames) {
      const msgVpn = this.msgVpns.add(
        msgVpnName,
        completeValues(MSG_VPNS, {
          enabled: true,
          authenticationBasicEnabled: true,
          authenticationBasicType: 'internal',
          ...this.options.msgVpnValues,
          msgVpnName,
        }),
      )
      for (const [table, values] of RESERVED) {
        this.childForWriting(msgVpn, table).add(RESERVED_NAME, completeValues(table, values))
      }
    }
  }

  collection(msgVpnName: string, table: ObjectTable): ObjectCollection | undefined {
    const msgVpn = this.msgVpns.get(msgVpnName)
    return msgVpn && this.childForWriting(msgVpn, table)
  }

  accounts(msgVpnName: string): AccountTable {
    let accounts = this.#accounts.get(msgVpnName)
    if (accounts === undefined) {
      accounts = new AccountTable(
        () => this.msgVpns.get(msgVpnName),
        () => this.collection(msgVpnName, CLIENT_USERNAMES),
      )
      this.#accounts.set(msgVpnName, accounts)
    }
    return accounts
  }

  mayChange(scope: Scope): boolean {
    const { sempScope } = this.options
    return sempScope === 'global' || (sempScope === 'vpn' && scope === 'vpn/read-write')
  }

  spool(msgVpnName: string, queueName: string): QueueSpool {
    return this.#spools.get(`${msgVpnName}\n${queueName}`) ?? { messages: 0, bytes: 0 }
  }

  setSpool(msgVpnName: string, queueName: string, spool: QueueSpool | null): void {
    if (spool === null) this.#spools.delete(`${msgVpnName}\n${queueName}`)
    else this.#spools.set(`${msgVpnName}\n${queueName}`, spool)
  }

  /** The innermost parent. Throws `NOT_FOUND` naming the first one that is missing; null above the message VPNs. */
  owner(parents: readonly PathStep[]): StoredObject | null {
    let owner: StoredObject | null = null
    for (const step of parents) {
      const found: StoredObject | undefined = this.childOf(owner, step.table)?.get(step.key)
      if (found === undefined) throw notFound(step)
      owner = found
    }
    return owner
  }

  /** Undefined while nothing was ever put in it. */
  childOf(owner: StoredObject | null, table: ObjectTable): ObjectCollection | undefined {
    return owner === null ? this.msgVpns : owner.children?.get(table.collection)
  }

  childForWriting(owner: StoredObject | null, table: ObjectTable): ObjectCollection {
    if (owner === null) return this.msgVpns
    owner.children ??= new Map()
    let child = owner.children.get(table.collection)
    if (child === undefined) {
      child = new ObjectCollection(table, this.options.seed)
      owner.children.set(table.collection, child)
    }
    return child
  }
}

export const notFound = (step: PathStep): SempFailure =>
  new SempFailure('NOT_FOUND', `Could not find match for ${step.table.label} "${step.key}".`)
