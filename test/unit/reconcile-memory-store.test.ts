import { Secret } from '../../src/domain/secret.ts'
import { reconcileStoreContract, type StoreSubject, secretOf } from '../contract/reconcile-store-contract.ts'
import { MemoryStore } from '../helpers/memory-store.ts'
import { credential, registrationOf } from '../helpers/sample.ts'

class MemorySubject implements StoreSubject {
  readonly store = new MemoryStore(Date.now, 2)
  readonly sweepStore = this.store

  async addPair(...[pair, credentials = {}]: Parameters<StoreSubject['addPair']>): Promise<void> {
    const list = Object.entries(credentials)
    const registration = registrationOf(pair, { credentials: list.map(([key, version]) => credential(key, version)) })
    this.store.put(pair, { registration })
    for (const [key, version] of list) {
      this.store.putSecret(pair, key, { version, secret: new Secret(secretOf(pair, key, version)) })
    }
  }

  async raiseGeneration(...[pair]: Parameters<StoreSubject['raiseGeneration']>): Promise<void> {
    this.store.put(pair, { registration: this.store.row(pair).registration })
  }

  async withdraw(...[pair]: Parameters<StoreSubject['withdraw']>): Promise<void> {
    this.store.put(pair, { registration: { ...this.store.row(pair).registration, accessRequests: [] } })
  }

  async requestPassword(...[pair, key]: Parameters<StoreSubject['requestPassword']>): Promise<void> {
    const entry = this.store.ledger(pair).find(({ object }) => object.name === key)
    if (entry !== undefined) this.store.setLedger(pair, { ...entry, passwordDue: true })
  }

  async expireLease(...[pair]: Parameters<StoreSubject['expireLease']>): Promise<void> {
    this.store.row(pair).leaseUntilMs = Date.now() - 1
  }

  async leaseEndsInMs(...[pair]: Parameters<StoreSubject['leaseEndsInMs']>): Promise<number> {
    return this.store.row(pair).leaseUntilMs - Date.now()
  }

  lagging = async () => this.store.lagging()
  requestState = async (...[pair]: Parameters<StoreSubject['requestState']>) => this.store.row(pair).request
  async [Symbol.asyncDispose](): Promise<void> {}
}

reconcileStoreContract('the store in memory', async () => new MemorySubject())
