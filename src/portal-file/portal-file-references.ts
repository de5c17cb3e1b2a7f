import type { Problem } from '../domain/errors.ts'
import type { JsonObject, JsonValue } from '../domain/portal-file.ts'
import { newestVersion } from '../domain/semantic-version.ts'
import { type Path, problemAt, type YamlSource } from './yaml-source.ts'

/** A map of the file with its place. The checks here read the file as it is, so that a bad item hides no other problem. */
export interface Item {
  readonly value: JsonObject
  readonly path: Path
}

export function itemsOf(parent: Item, key: string): readonly Item[] {
  const list = own(parent.value, key)
  if (!isList(list)) return []
  return list.flatMap((value, position) => (isMap(value) ? [{ value, path: [...parent.path, key, position] }] : []))
}

export function textOf(item: Item, key: string): string | undefined {
  const value = own(item.value, key)
  return typeof value === 'string' ? value : undefined
}

export const isMap = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !isList(value)
export const isList = (value: JsonValue | undefined): value is readonly JsonValue[] => Array.isArray(value)
export const own = (value: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined

/** An Event API that a product version names, as text or as a map. */
export function eventApiReferences(version: Item): readonly { id: string; version?: string; path: Path }[] {
  const list = own(version.value, 'eventApis')
  if (!isList(list)) return []
  return list.flatMap((entry, position) => {
    const path = [...version.path, 'eventApis', position]
    if (typeof entry === 'string') return [{ id: entry, path }]
    if (!isMap(entry)) return []
    const [id, named] = [own(entry, 'id'), own(entry, 'version')]
    if (typeof id !== 'string') return []
    return typeof named === 'string' ? [{ id, version: named, path }] : [{ id, path }]
  })
}

/** The version that an access request means: the one it names, else the newest RELEASED one of the product. */
export function requestedVersion(product: Item, accessRequest: Item): Item | undefined {
  const versions = itemsOf(product, 'versions')
  const named = textOf(accessRequest, 'version')
  const released = versions.filter((version) => textOf(version, 'state') === 'RELEASED')
  const wanted = named ?? newestVersion(released.flatMap((version) => textOf(version, 'version') ?? []))
  return versions.find((version) => textOf(version, 'version') === wanted)
}

/** Duplicates and references to what the file does not declare. */
export function referenceProblems(source: YamlSource, root: Item): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Path, message: string): void => void problems.push(problemAt(source, path, message))
  const unique = uniqueness(source, report)

  const sections = [
    'environments',
    'eventMeshes',
    'brokers',
    'applicationDomains',
    'products',
    'registrations',
  ] as const
  for (const section of sections) unique(itemsOf(root, section), 'id')
  uniqueEventApis(root, source, report)
  uniqueMessageVpns(root, source, report)

  const known = (section: string): ReadonlySet<string> =>
    new Set(itemsOf(root, section).flatMap((item) => textOf(item, 'id') ?? []))
  const refer = (section: string, what: string) => {
    const ids = known(section)
    return (item: Item, key: string): void => {
      const id = textOf(item, key)
      if (id !== undefined && !ids.has(id)) report([...item.path, key], `no ${what} \`${id}\` in \`${section}\``)
    }
  }
  const domain = refer('applicationDomains', 'application domain')
  for (const mesh of itemsOf(root, 'eventMeshes')) refer('environments', 'environment')(mesh, 'environment')
  for (const broker of itemsOf(root, 'brokers')) refer('eventMeshes', 'event mesh')(broker, 'eventMesh')
  for (const eventApi of itemsOf(root, 'eventApis')) domain(eventApi, 'applicationDomain')
  for (const product of itemsOf(root, 'products')) {
    domain(product, 'applicationDomain')
    unique(itemsOf(product, 'versions'), 'version')
    for (const version of itemsOf(product, 'versions')) checkVersion(root, version, known('brokers'), unique, report)
  }
  for (const registration of itemsOf(root, 'registrations')) {
    domain(registration, 'applicationDomain')
    unique(itemsOf(registration, 'accessRequests'), 'id')
    unique(itemsOf(registration, 'credentials'), 'name')
    for (const request of itemsOf(registration, 'accessRequests')) checkAccessRequest(root, request, report)
  }
  unique(
    itemsOf(root, 'registrations').flatMap((registration) => itemsOf(registration, 'credentials')),
    'consumerKey',
  )
  return problems
}

type Report = (path: Path, message: string) => void
type Unique = (items: readonly Item[], key: string) => void

function uniqueness(source: YamlSource, report: Report): Unique {
  return (items, key) => {
    const first = new Map<string, Item>()
    for (const item of items) {
      const text = textOf(item, key)
      if (text === undefined) continue
      const earlier = first.get(text)
      if (earlier === undefined) first.set(text, item)
      else report([...item.path, key], `\`${text}\` is given already on line ${source.lineOf([...earlier.path, key])}`)
    }
  }
}

function uniqueEventApis(root: Item, source: YamlSource, report: Report): void {
  const first = new Map<string, Item>()
  for (const item of itemsOf(root, 'eventApis')) {
    const [id, version] = [textOf(item, 'id'), textOf(item, 'version')]
    if (id === undefined || version === undefined) continue
    const earlier = first.get(JSON.stringify([id, version]))
    if (earlier === undefined) first.set(JSON.stringify([id, version]), item)
    else {
      const line = source.lineOf([...earlier.path, 'id'])
      report([...item.path, 'id'], `\`${id}\` has the version ${version} already on line ${line}`)
    }
  }
}

/** A message VPN is known by the management address and its name. */
function uniqueMessageVpns(root: Item, source: YamlSource, report: Report): void {
  const first = new Map<string, Item>()
  for (const broker of itemsOf(root, 'brokers')) {
    const management = own(broker.value, 'management')
    if (!isMap(management)) continue
    const settings: Item = { value: management, path: [...broker.path, 'management'] }
    const [url, msgVpn] = [textOf(settings, 'url'), textOf(settings, 'msgVpn')]
    if (url === undefined || msgVpn === undefined || !URL.canParse(url)) continue
    const key = JSON.stringify([normaliseUrl(url), msgVpn])
    const earlier = first.get(key)
    if (earlier === undefined) first.set(key, settings)
    else {
      const line = source.lineOf([...earlier.path, 'msgVpn'])
      report(
        [...settings.path, 'msgVpn'],
        `the message VPN \`${msgVpn}\` of this address is given already on line ${line}`,
      )
    }
  }
}

/** The same address in one spelling: host in lower case, no default port, no slash at the end. */
export function normaliseUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

function checkVersion(root: Item, version: Item, brokers: ReadonlySet<string>, unique: Unique, report: Report): void {
  unique(itemsOf(version, 'plans'), 'id')
  unique(itemsOf(version, 'plans'), 'name')
  const eventApis = itemsOf(root, 'eventApis')
  const seenApis = new Set<string>()
  for (const reference of eventApiReferences(version)) {
    const versions = eventApis.filter((item) => textOf(item, 'id') === reference.id)
    if (versions.length === 0) report(reference.path, `no Event API \`${reference.id}\` in \`eventApis\``)
    else if (
      reference.version !== undefined &&
      !versions.some((item) => textOf(item, 'version') === reference.version)
    ) {
      report(reference.path, `Event API \`${reference.id}\` has no version ${reference.version} in \`eventApis\``)
    }
    if (seenApis.has(reference.id)) report(reference.path, `Event API \`${reference.id}\` is in this version already`)
    seenApis.add(reference.id)
  }
  const list = own(version.value, 'brokers')
  const seenBrokers = new Set<JsonValue>()
  for (const [position, id] of (isList(list) ? list : []).entries()) {
    if (typeof id !== 'string') continue
    const path = [...version.path, 'brokers', position]
    if (!brokers.has(id)) report(path, `no broker \`${id}\` in \`brokers\``)
    if (seenBrokers.has(id)) report(path, `broker \`${id}\` is in this version already`)
    seenBrokers.add(id)
  }
}

function checkAccessRequest(root: Item, request: Item, report: Report): void {
  const productId = textOf(request, 'product')
  if (productId === undefined) return
  const product = itemsOf(root, 'products').find((item) => textOf(item, 'id') === productId)
  if (product === undefined) {
    report([...request.path, 'product'], `no product \`${productId}\` in \`products\``)
    return
  }
  const version = requestedVersion(product, request)
  const named = textOf(request, 'version')
  if (version === undefined) {
    const message =
      named === undefined
        ? `product \`${productId}\` has no version in state RELEASED; name a version`
        : `product \`${productId}\` has no version ${named}`
    report([...request.path, named === undefined ? 'product' : 'version'], message)
    return
  }
  const plan = textOf(request, 'plan')
  if (plan !== undefined && !itemsOf(version, 'plans').some((item) => textOf(item, 'id') === plan)) {
    report(
      [...request.path, 'plan'],
      `version ${textOf(version, 'version')} of product \`${productId}\` has no plan \`${plan}\``,
    )
  }
}
