import { z } from 'zod'
import type { Plan } from '../reconcile/plan.ts'
import type { DriftView } from '../store/drift-view.ts'
import type { NamedBrokerExplanation, ProductExplanation } from '../store/explain-product.ts'
import type { RegistrationExplanation } from '../store/explain-registration.ts'
import type { RemoteCatalogueStatus } from '../store/followed-catalogues.ts'
import type { PauseView } from '../store/pause.ts'
import type { BrokerStatusView } from '../store/status-view.ts'
import {
  type AdoptRequest,
  type DriftRequest,
  MAX_LAGGING,
  MAX_PAUSES,
  type Operations,
  type Orphan,
  type OrphanDeletion,
  type PauseTarget,
  type ReapplyRequest,
  type RunEvent,
  type RunRequest,
  type VerifyEvent,
  type VerifyRequest,
} from './operations.ts'
import type { ImportEvent, ImportRequest } from './portal-import.ts'
import { type Call, ServiceClient, type ServiceClientOptions } from './service-client.ts'
import { unknownInput, unknownTarget } from './unknown-input.ts'

/** On the operations API of a service that runs elsewhere. */
export class HttpOperations implements Operations {
  readonly #client: ServiceClient

  constructor(options: ServiceClientOptions) {
    this.#client = new ServiceClient(options)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async status(brokerId?: string): Promise<readonly BrokerStatusView[]> {
    if (brokerId === undefined) return await this.#list<BrokerStatusView>({ method: 'GET', path: ['status'] })
    const found = await this.#object<BrokerStatusView>({ method: 'GET', path: ['brokers', brokerId, 'status'] })
    return found === null ? [] : [found]
  }

  followedCatalogue(): Promise<RemoteCatalogueStatus | null> {
    return this.#object({ method: 'GET', path: ['remoteCatalogue'] })
  }

  plans(query: RunRequest, signal: AbortSignal): AsyncIterable<Plan> {
    return this.#stream({ method: 'GET', path: ['plan', 'stream'], query: { ...query }, signal })
  }

  reconcile(body: RunRequest, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#stream({ method: 'POST', path: ['reconcile', 'stream'], body, signal })
  }

  reapply(body: ReapplyRequest, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#stream({ method: 'POST', path: ['reapply', 'stream'], body, signal })
  }

  confirmWithdrawals(brokerId: string, signal: AbortSignal): AsyncIterable<RunEvent> {
    const path = ['brokers', brokerId, 'confirmWithdrawals', 'stream']
    return this.#stream({ method: 'POST', path, signal })
  }

  verify(body: VerifyRequest, signal: AbortSignal): AsyncIterable<VerifyEvent> {
    return this.#stream({ method: 'POST', path: ['verify', 'stream'], body, signal })
  }

  drift({ openOnly, limit, ...filter }: DriftRequest): Promise<readonly DriftView[]> {
    return this.#list({ method: 'GET', path: ['drift'], query: { ...filter, open: openOnly } }, limit)
  }

  pauses(): Promise<readonly PauseView[]> {
    return this.#list({ method: 'GET', path: ['pauses'] }, MAX_PAUSES)
  }

  async pause(target: PauseTarget): Promise<void> {
    const done = await this.#client.object({ method: 'POST', path: [...pathOf(target), 'pause'] })
    if (done === null) throw unknownTarget(target)
  }

  async resume(target: PauseTarget): Promise<number> {
    const resumed = await this.#client.object({ method: 'POST', path: [...pathOf(target), 'resume'] })
    if (resumed === null) throw unknownTarget(target)
    return Math.min(counted.parse(resumed).count, MAX_LAGGING)
  }

  explainProduct(id: string): Promise<ProductExplanation | null> {
    return this.#object({ method: 'GET', path: ['products', id, 'explanation'] })
  }

  explainBroker(id: string): Promise<NamedBrokerExplanation | null> {
    return this.#object({ method: 'GET', path: ['brokers', id, 'explanation'] })
  }

  explainRegistration(id: string): Promise<RegistrationExplanation | null> {
    return this.#object({ method: 'GET', path: ['registrations', id, 'explanation'] })
  }

  orphans(brokerId: string | undefined, signal: AbortSignal): AsyncIterable<Orphan> {
    return this.#stream({ method: 'GET', path: ['orphans', 'stream'], query: { brokerId }, signal })
  }

  deleteOrphans({ brokerId, only }: OrphanDeletion, signal: AbortSignal): AsyncIterable<Orphan> {
    const body = only === null ? { all: true } : only
    return this.#stream({ method: 'POST', path: ['brokers', brokerId, 'orphans', 'delete', 'stream'], body, signal })
  }

  async adopt({ brokerId, kind, name }: AdoptRequest): Promise<void> {
    const path = ['brokers', brokerId, 'adoptions']
    const adopted = await this.#client.object({ method: 'POST', path, body: { kind, name } })
    if (adopted === null) throw unknownInput('brokerId', `there is no broker ${brokerId} in this account`)
  }

  importPortal({ portal, dryRun, prune, confirmedDeletions }: ImportRequest, signal: AbortSignal) {
    const { path, texts, realPaths, secrets } = portal.source
    const revealed = [...secrets].map(([name, secret]) => [name, secret.reveal()] as const)
    const body = {
      path,
      texts: Object.fromEntries(texts),
      realPaths: Object.fromEntries(realPaths),
      secrets: Object.fromEntries(revealed),
      dryRun,
      prune,
      confirmedDeletions,
    }
    return this.#stream<ImportEvent>({ method: 'POST', path: ['portalFile', 'stream'], body, signal })
  }

  /** The envelope is checked; what is inside is data of the same program, which is printed as it came. */
  async #object<Item>(call: Call): Promise<Item | null> {
    return (await this.#client.object(call)) as Item | null
  }

  async #list<Item>(call: Call, limit?: number): Promise<readonly Item[]> {
    return (await this.#client.list(call, limit)) as readonly Item[]
  }

  #stream<Event>(call: Call): AsyncIterable<Event> {
    return this.#client.stream(call) as AsyncIterable<Event>
  }
}

const counted = z.object({ count: z.int() })

const pathOf = ({ scope, id }: PauseTarget): readonly string[] =>
  id === null ? [] : [scope === 'broker' ? 'brokers' : 'registrations', id]
