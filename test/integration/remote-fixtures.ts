import type { AddressInfo } from 'node:net'
import { Disposer } from '../../src/disposer.ts'
import type { PortalBroker, PortalEventApi, PortalFile, PortalRegistration } from '../../src/domain/portal-file.ts'
import { readAsyncApiText } from '../../src/portal-file/asyncapi-document.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type ApiOptions, type TestApi, withApi } from '../helpers/http.ts'
import { HttpFront } from '../helpers/http-front.ts'
import { emptyPortalFile, type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { broker, eventApi, product, productVersion } from './import-fixtures.ts'

const APIM = '/api/v2/apim'

export interface RemoteOptions extends ApiOptions {
  /** What the remote has, beside brokers of the names of ours. */
  readonly portal: (brokers: readonly PortalBroker[]) => Partial<PortalFile> | Promise<Partial<PortalFile>>
  readonly mesh?: MeshOptions
  /** Settings of the follower instead of the token's. */
  readonly access?: (url: string) => Readonly<Record<string, string>>
}

/**
 * Two services: `remote` serves a catalogue over HTTP and manages no broker; `mesh` has simulated brokers, declared by a
 * portal file without a catalogue, and follows it.
 */
export class FollowedRemote implements AsyncDisposable {
  readonly remote: TestApi
  readonly mesh: TestMesh
  /** What the follower talks to: the remote, unless it is told to fail. */
  readonly front: HttpFront
  readonly #opened: Disposer
  #portal: PortalFile

  constructor(parts: RemoteParts) {
    this.remote = parts.remote
    this.mesh = parts.mesh
    this.front = parts.front
    this.#opened = parts.opened
    this.#portal = parts.portal
  }

  /** What was imported into the remote last. */
  get portal(): PortalFile {
    return this.#portal
  }

  get url(): string {
    return this.front.url
  }

  get follower() {
    const { remote } = this.mesh.context
    if (remote === null) throw new Error('this service follows nothing')
    return remote
  }

  /** A call of the remote's APIM API; throws when it is refused. */
  async call<Body = unknown>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<Body> {
    const answer = await this.remote.call<{ data: Body }>(method, `${APIM}/${path}`, body === undefined ? {} : { body })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body?.data
  }

  /** Imports into the remote the catalogue of the last import with these parts replaced; of registrations only those given. */
  async change(
    parts: Partial<PortalFile>,
    options: { readonly prune?: boolean; readonly confirmedDeletions?: number } = {},
  ): Promise<void> {
    this.#portal = { ...this.#portal, registrations: [], ...parts }
    const { db, sealer, now } = this.remote.dependencies
    const dependencies = { db, sealer, random: cryptoRandom, nowMs: now }
    await importPortalFile(dependencies, this.remote.accountId, this.#portal, options)
  }

  /** One pass, then every broker is brought in step. */
  async follow(): Promise<void> {
    await this.follower.pull()
    await this.mesh.sweepAll()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.dispose()
  }
}

interface RemoteParts {
  readonly remote: TestApi
  readonly mesh: TestMesh
  readonly front: HttpFront
  readonly opened: Disposer
  readonly portal: PortalFile
}

export async function withFollowedRemote(options: RemoteOptions): Promise<FollowedRemote> {
  const opened = new Disposer()
  try {
    const remote = await withApi(options)
    opened.defer(() => remote[Symbol.asyncDispose]())
    await remote.app.listen({ host: '127.0.0.1', port: 0 })
    const listening = `http://127.0.0.1:${(remote.app.server.address() as AddressInfo).port}`
    const front = await HttpFront.start(listening)
    opened.defer(() => front[Symbol.asyncDispose]())
    const access = options.access?.(front.url) ?? { KEYMESH_APIM_TOKEN: remote.token }
    const mesh = await withMesh({
      ...options.mesh,
      env: { KEYMESH_APIM_URL: front.url, ...access, ...options.mesh?.env },
    })
    opened.defer(() => mesh[Symbol.asyncDispose]())
    await mesh.import({ applicationDomains: [] })
    // The remote knows the brokers by the same names, and nothing of where they are.
    const brokers = mesh.brokers.map(({ id }) => broker(id))
    const followed = new FollowedRemote({
      ...{ remote, mesh, front, opened },
      portal: emptyPortalFile(brokers),
    })
    await followed.change(await options.portal(brokers))
    return followed
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

export interface Topics {
  readonly publish?: readonly string[]
  readonly subscribe?: readonly string[]
}

/** An Event API with a real AsyncAPI document: what clients may publish and subscribe to. */
export async function documented(
  id: string,
  { publish = [], subscribe = [] }: Topics,
  overrides: Partial<PortalEventApi> = {},
): Promise<PortalEventApi> {
  const operation = (kind: string) => ({ [kind]: { message: { payload: { type: 'object' } } } })
  const json = {
    asyncapi: '2.6.0',
    info: { title: id, version: '1.0.0' },
    channels: Object.fromEntries([
      ...publish.map((topic) => [topic, operation('publish')]),
      ...subscribe.map((topic) => [topic, operation('subscribe')]),
    ]),
  }
  const { channels, document, version, title } = await readAsyncApiText(id, JSON.stringify(json))
  const documentOf = { file: id, asyncApiVersion: version, title, json: document }
  return eventApi(id, { channels, document: documentOf, ...overrides })
}

/** The product `orders` in version 1.0.0 on these brokers, with a real document. */
export async function ordersRemote(
  brokers: readonly PortalBroker[],
  registrations: readonly PortalRegistration[],
): Promise<Partial<PortalFile>> {
  const version = productVersion({ brokers: brokers.map(({ id }) => id) })
  return {
    eventApis: [await documented('orders-api', { publish: ['orders/cancel'], subscribe: ['orders/placed'] })],
    products: [product('orders', { versions: [version] })],
    registrations,
  }
}
