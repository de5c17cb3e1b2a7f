import { codeOf } from '../domain/errors.ts'
import type { PortalApplicationDomain, PortalProduct, PortalRegistration } from '../domain/portal-file.ts'
import type { KnownCatalogue, RemoteBroker, RemoteCatalogue } from '../domain/remote-catalogue.ts'
import { compareVersions } from '../domain/semantic-version.ts'
import { concurrently } from '../reconcile/concurrently.ts'
import type { ApimClient } from './apim-client.ts'
import { readDocuments, type UnderstandDocument, type WantedDocument } from './apim-documents.ts'
import { readGateway } from './apim-gateways.ts'
import { type ListedProduct, type ProductReading, readProduct } from './apim-products.ts'
import {
  type ListedRegistration,
  type RegistrationReading,
  readAccessRequests,
  readCredentials,
  readRegistration,
} from './apim-registrations.ts'
import { Findings } from './findings.ts'

export interface RemoteReadOptions {
  readonly client: ApimClient
  readonly known: KnownCatalogue
  readonly understand: UnderstandDocument
  readonly nowMs: number
  /** Reads every document again, whatever is remembered of it. */
  readonly allDocuments?: boolean
  readonly signal?: AbortSignal | undefined
}

interface Pass extends RemoteReadOptions {
  readonly findings: Findings
}

const PRODUCTS = 'eventApiProducts'
const REGISTRATIONS = 'appRegistrations'
const AT_A_TIME = 4

/**
 * One pass over another service: everything that there is, or an error and nothing. Pages of a list are not of one
 * moment, so what is stored and was in none of them is asked for by its name before it counts as gone.
 */
export async function readRemoteCatalogue(options: RemoteReadOptions): Promise<RemoteCatalogue> {
  const pass: Pass = { ...options, findings: new Findings() }
  const shown = await readShownProducts(pass)
  const registrations = await readRegistrations(pass)
  const asked = await readAskedVersions(pass, shown, registrations)
  const versions = [...shown.values(), ...asked]
  const gateways = await readGateways(pass)
  const { eventApis, documents } = await readDocuments(wantedDocuments(versions, shown, registrations), {
    client: pass.client,
    known: pass.known.documents,
    understand: pass.understand,
    findings: pass.findings,
    nowMs: pass.nowMs,
    all: pass.allDocuments ?? false,
    signal: pass.signal,
  })
  const { findings } = pass
  return {
    products: toProducts(versions),
    eventApis,
    applicationDomains: domainsOf(versions, registrations),
    registrations,
    brokers: brokersOf(versions, gateways),
    unread: findings.unread,
    documents,
    warnings: findings.warnings,
  }
}

/** The newest released version of each visible product, by product. */
async function readShownProducts(pass: Pass): Promise<ReadonlyMap<string, ListedProduct>> {
  const { client, findings, signal } = pass
  const shown = new Map<string, ListedProduct>()
  const seen = new Set<string>()
  const keep = async (reading: ProductReading): Promise<void> => {
    if (reading.kind === 'summary') {
      const detail = await client.find(`${PRODUCTS}/${reading.id}`, signal)
      if (detail !== null) await keep(readProduct(detail, findings, { asDetail: true }))
      return
    }
    const id = reading.kind === 'read' ? reading.listed.product.id : reading.id
    if (id !== null) seen.add(id)
    if (reading.kind !== 'read') return
    const { listed } = reading
    const other = shown.get(listed.product.id)
    // A service may list more than the newest version; the others are asked for where a request is for them.
    const isOlder = other !== undefined && compareVersions(listed.version.version, other.version.version) < 0
    if (!isOlder) shown.set(listed.product.id, listed)
  }
  const readAll = async (): Promise<void> => {
    const readings = await client.list(PRODUCTS, (item) => readProduct(item, findings), signal)
    await concurrently(readings, AT_A_TIME, keep)
  }
  await readAll()
  await lookAgain(pass.known.products, seen, {
    one: async (id) => {
      const detail = await client.find(`${PRODUCTS}/${id}`, signal)
      if (detail !== null) await keep(readProduct(detail, findings, { asDetail: true }))
    },
    all: readAll,
  })
  return shown
}

interface SecondLook {
  /** Asks for one of them by its id. */
  readonly one: (id: string) => Promise<void>
  /** Walks the whole list again. */
  readonly all: () => Promise<void>
}

/** Asking for each of more than these costs more than another walk, in which they are missing again or not. */
const ASKED_ONE_BY_ONE = 50
/** Such ids may stand in a path; the API's description allows ids that may not. */
const IN_A_PATH = /^[A-Za-z0-9_-]{4,188}$/

async function lookAgain(known: ReadonlySet<string>, seen: ReadonlySet<string>, look: SecondLook): Promise<void> {
  const missing = [...known].filter((id) => !seen.has(id))
  if (missing.length === 0) return
  if (missing.length > ASKED_ONE_BY_ONE || !missing.every((id) => IN_A_PATH.test(id))) await look.all()
  else await concurrently(missing, AT_A_TIME, look.one)
}

async function readRegistrations(pass: Pass): Promise<readonly PortalRegistration[]> {
  const { client, findings, signal } = pass
  const registrations = new Map<string, PortalRegistration>()
  const seen = new Set<string>()
  const read = (item: unknown): RegistrationReading => readRegistration(item, findings)
  const keep = async ({ id, listed }: RegistrationReading): Promise<void> => {
    if (id !== null) seen.add(id)
    if (listed === null) return
    const registration = await withParts(pass, listed)
    registrations.set(registration.id, registration)
  }
  const readAll = async (): Promise<void> => {
    await concurrently(await client.list(REGISTRATIONS, read, signal), AT_A_TIME, keep)
  }
  await readAll()
  await lookAgain(pass.known.registrations, seen, {
    one: async (id) => {
      const found = await client.find(`${REGISTRATIONS}/${id}`, signal)
      if (found !== null) await keep(read(found))
    },
    all: readAll,
  })
  return [...registrations.values()]
}

/** A service may show registrations without what hangs on them; then each is asked for it. */
async function withParts(pass: Pass, listed: ListedRegistration): Promise<PortalRegistration> {
  const { client, findings, signal } = pass
  const { id } = listed.registration
  const part = (name: string) =>
    client.list(`${REGISTRATIONS}/${encodeURIComponent(id)}/${name}`, (item) => item, signal)
  return {
    ...listed.registration,
    accessRequests: readAccessRequests(listed.accessRequests ?? (await part('accessRequests')), id, findings),
    credentials: readCredentials(listed.credentials ?? (await part('credentials')), id, findings),
  }
}

interface AskedVersion {
  readonly id: string
  readonly version: string
  /** Of one access request for it; null when none can stand in a path. */
  readonly requestPath: string | null
}

/** Versions that are not shown, or no more, and that access requests were made for. */
async function readAskedVersions(
  pass: Pass,
  shown: ReadonlyMap<string, ListedProduct>,
  registrations: readonly PortalRegistration[],
): Promise<readonly ListedProduct[]> {
  const paths = requestPaths(registrations)
  const asked = new Map<string, AskedVersion>()
  for (const { productId: id, productVersion: version, state } of registrations.flatMap(
    (each) => each.accessRequests,
  )) {
    if (state === 'REJECTED' || state === 'REVOKED' || shown.get(id)?.version.version === version) continue
    const name = keyOf(id, version)
    asked.set(name, { id, version, requestPath: paths.get(name) ?? null })
  }
  const versions: ListedProduct[] = []
  await concurrently(asked.values(), AT_A_TIME, async (each) => {
    const listed = await readAskedVersion(pass, each)
    if (listed !== null) versions.push(listed)
  })
  return versions.sort((one, other) => compared(nameOf(one), nameOf(other)))
}

/** A version that is hidden and one that was deleted look the same, but for what requests for them have left. */
async function readAskedVersion(pass: Pass, { id, version, requestPath }: AskedVersion): Promise<ListedProduct | null> {
  const { client, findings, signal } = pass
  const found = await client.find(`${PRODUCTS}/${id}/history/${encodeURIComponent(version)}`, signal)
  if (found !== null) {
    const reading = readProduct(found, findings, { asDetail: true })
    return reading.kind === 'read' ? reading.listed : null
  }
  if (requestPath !== null) {
    const left = await client.list(`${requestPath}/eventApis`, (item) => item, signal)
    if (left.length === 0) return null
  }
  const unread = { kind: 'productVersion', id, version } as const
  findings.leave(unread, `Version ${version} of product ${id} is asked for and not shown; it stays as stored.`)
  return null
}

const keyOf = (id: string, version: string): string => `${id} ${version}`
const nameOf = ({ product, version }: ListedProduct): string => keyOf(product.id, version.version)
const compared = (one: string, other: string): number => (one < other ? -1 : Number(one > other))

/** Not every service has them, and nothing that is on a broker depends on them. */
async function readGateways({ client, findings, signal }: Pass): Promise<readonly RemoteBroker[]> {
  try {
    const read = await client.list('gateways', (item) => readGateway(item, findings), signal)
    return read.flatMap((gateway) => gateway ?? [])
  } catch (error) {
    if (!['REMOTE_NOT_FOUND', 'REMOTE_FORBIDDEN'].includes(codeOf(error))) throw error
    findings.warn('The gateways cannot be read; where clients connect has to be declared here.')
    return []
  }
}

/** What a product has of its own comes from the version that is shown, else from the newest that was asked for. */
function toProducts(versions: readonly ListedProduct[]): readonly PortalProduct[] {
  const products = new Map<string, PortalProduct>()
  for (const { product, version } of versions) {
    const known = products.get(product.id) ?? { ...product, versions: [] }
    products.set(product.id, { ...known, versions: [...known.versions, version] })
  }
  return [...products.values()]
}

/** A registration may name a domain that no product has. */
function domainsOf(
  versions: readonly ListedProduct[],
  registrations: readonly PortalRegistration[],
): readonly PortalApplicationDomain[] {
  const domains = new Map<string, PortalApplicationDomain>()
  for (const { domain } of versions) if (domain !== null && !domains.has(domain.id)) domains.set(domain.id, domain)
  for (const { applicationDomainId: id } of registrations) {
    if (id !== null && !domains.has(id)) domains.set(id, { id, name: id, description: '' })
  }
  return [...domains.values()]
}

function brokersOf(versions: readonly ListedProduct[], gateways: readonly RemoteBroker[]): readonly RemoteBroker[] {
  const brokers = new Map<string, RemoteBroker>()
  for (const { id, name } of versions.flatMap((each) => each.brokers)) brokers.set(id, { id, name, messaging: null })
  for (const gateway of gateways) brokers.set(gateway.id, gateway)
  return [...brokers.values()]
}

/** A shown version has its documents by a plan, an older one by an access request for it. */
function wantedDocuments(
  versions: readonly ListedProduct[],
  shown: ReadonlyMap<string, ListedProduct>,
  registrations: readonly PortalRegistration[],
): readonly WantedDocument[] {
  const requests = requestPaths(registrations)
  return versions.flatMap((listed) => {
    const { product, version, eventApis, parameters } = listed
    const [plan] = version.plans
    const byPlan = plan === undefined ? undefined : `${PRODUCTS}/${product.id}/plans/${plan.id}`
    const base = shown.get(product.id) === listed ? byPlan : requests.get(nameOf(listed))
    if (base === undefined) return []
    return eventApis.map((eventApi) => ({
      eventApi,
      path: `${base}/eventApis/${eventApi.id}`,
      context: parameters,
    }))
  })
}

/** Where the Event APIs of a product version are, by the first access request for it that can stand in a path. */
function requestPaths(registrations: readonly PortalRegistration[]): ReadonlyMap<string, string> {
  const paths = new Map<string, string>()
  for (const { id, accessRequests } of registrations) {
    for (const request of accessRequests) {
      const name = keyOf(request.productId, request.productVersion)
      if (paths.has(name) || !IN_A_PATH.test(id) || !IN_A_PATH.test(request.id)) continue
      paths.set(name, `${REGISTRATIONS}/${id}/accessRequests/${request.id}`)
    }
  }
  return paths
}
