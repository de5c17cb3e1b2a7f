import type { Values } from './attribute.ts'
import type { BrokerModel } from './broker-model.ts'
import { notFound } from './broker-model.ts'
import { MONITOR_VIEWS, MONITORED_ONLY, type MonitorView } from './monitor-views.ts'
import type { ObjectCollection, StoredObject } from './object-collection.ts'
import type { ObjectTable } from './object-tables.ts'
import {
  type Answer,
  collectionUriOf,
  failureAnswer,
  identityOf,
  inheritedValues,
  linksOf,
  type RequestEcho,
  successAnswer,
} from './semp-answer.ts'
import { SempFailure } from './semp-errors.ts'
import { readPage } from './semp-paging.ts'
import { type CollectionPath, readPath } from './semp-path.ts'
import { readQuery, type SempQuery } from './semp-query.ts'
import { compileSelect, type Projection, wholeProjection } from './semp-select.ts'
import { compileWhere } from './semp-where.ts'
import { SempWrites } from './semp-writes.ts'

export const CONFIG_BASE = '/SEMP/v2/config'
export const MONITOR_BASE = '/SEMP/v2/monitor'
const DEFAULT_COUNT = 10
const MAXIMUM_CACHED_SELECTIONS = 200
/** AboutApi of SEMP 2.49. */
const ABOUT_API = ['platform', 'sempVersion']
const ABOUT_USER = '/about/user'
/** Levels of SEMP 2.49 by what the user may do. */
const ACCESS_LEVELS = {
  global: { global: 'admin', msgVpn: 'read-write' },
  vpn: { global: 'none', msgVpn: 'read-write' },
  'read-only': { global: 'read-only', msgVpn: 'read-only' },
} as const
const BODY_METHODS = new Set(['POST', 'PUT', 'PATCH'])

export interface SempRequest {
  readonly method: string
  /** As it came, percent-encoded, with the query. */
  readonly target: string
  /** Scheme and authority, for links. */
  readonly origin: string
  readonly body: string
}

/** The configuration API and the part of the monitoring API that Keymesh reads, without HTTP. */
export class SempApi {
  readonly #model: BrokerModel
  readonly #writes: SempWrites
  readonly #selections = new Map<string, Projection>()

  constructor(model: BrokerModel) {
    this.#model = model
    this.#writes = new SempWrites(model)
  }

  handle(request: SempRequest): Answer {
    const echo: RequestEcho = { method: request.method, uri: request.origin + request.target }
    try {
      const question = request.target.indexOf('?')
      const path = question < 0 ? request.target : request.target.slice(0, question)
      const rawQuery = question < 0 ? '' : request.target.slice(question + 1)
      const isMonitor = path.startsWith(`${MONITOR_BASE}/`)
      if (!isMonitor && !path.startsWith(`${CONFIG_BASE}/`)) {
        throw new SempFailure('INVALID_PATH', `No paths found for ${path}`)
      }
      const base = isMonitor ? MONITOR_BASE : CONFIG_BASE
      const relative = path.slice(base.length)
      if (relative === '/about/api') return this.#about(request, echo, base, rawQuery)
      if (relative.startsWith(ABOUT_USER) && !isMonitor) return this.#aboutUser(request, echo, relative, rawQuery)
      const target = isMonitor ? readPath(relative, MONITORED_ONLY) : readPath(relative)
      const monitor = isMonitor ? this.#monitorView(target, path, request.method) : null
      const context = { request, echo, target, monitor, base: request.origin + base }
      return target.object === null ? this.#onCollection(context, rawQuery) : this.#onObject(context, rawQuery)
    } catch (error) {
      if (error instanceof SempFailure) return failureAnswer(error, echo)
      throw error
    }
  }

  #about(request: SempRequest, echo: RequestEcho, base: string, rawQuery: string): Answer {
    if (request.method !== 'GET') throw notSupported(request.method)
    const { select } = readQuery(rawQuery, 'object')
    const projection =
      select === null ? wholeProjection(ABOUT_API) : compileSelect(ABOUT_API, ABOUT_API, null, select.split(','))
    return successAnswer(echo, {
      data: projection({ platform: 'VMR', sempVersion: this.#model.options.sempVersion }, {}),
      links: { uri: `${request.origin}${base}/about/api` },
    })
  }

  /** What the SEMP user may do: globally, and on a message VPN. */
  #aboutUser(request: SempRequest, echo: RequestEcho, relative: string, rawQuery: string): Answer {
    if (request.method !== 'GET') throw notSupported(request.method)
    const { select } = readQuery(rawQuery, 'object')
    const { global, msgVpn } = ACCESS_LEVELS[this.#model.options.sempScope]
    const place = /^\/about\/user\/msgVpns\/([^/]+)$/.exec(relative)
    const msgVpnName = place === null ? null : decodeURIComponent(place[1] ?? '')
    if (relative !== ABOUT_USER && (msgVpnName === null || this.#model.msgVpns.get(msgVpnName) === undefined)) {
      throw new SempFailure('INVALID_PATH', `No paths found for ${relative}`)
    }
    const values: Values = msgVpnName === null ? { globalAccessLevel: global } : { accessLevel: msgVpn, msgVpnName }
    const known = Object.keys(values)
    const projection = select === null ? wholeProjection(known) : compileSelect(known, known, null, select.split(','))
    return successAnswer(echo, {
      data: projection(values, {}),
      links: { uri: `${request.origin}${CONFIG_BASE}${relative}` },
    })
  }

  #monitorView(target: CollectionPath, path: string, method: string): MonitorView {
    const view = MONITOR_VIEWS.get(target.table)
    if (view === undefined) throw new SempFailure('INVALID_PATH', `No paths found for ${path}`)
    if (method !== 'GET') throw notSupported(method)
    return view
  }

  #onCollection(context: Context, rawQuery: string): Answer {
    const { request, target } = context
    switch (request.method) {
      case 'GET':
        return this.#list(context, readQuery(rawQuery, 'list'), rawQuery)
      case 'POST': {
        const projection = this.#projection(context, readQuery(rawQuery, 'object').select)
        return this.#one(context, this.#writes.create(target, readBody(request.body)), projection)
      }
      default:
        throw notSupported(request.method)
    }
  }

  #onObject(context: Context, rawQuery: string): Answer {
    const { request, target } = context
    const step = target.object
    if (step === null) throw notSupported(request.method)
    if (request.method === 'DELETE') {
      this.#writes.delete(target, step)
      return successAnswer(context.echo, {})
    }
    const projection = this.#projection(context, readQuery(rawQuery, 'object').select)
    if (request.method === 'GET') {
      const object = this.#collection(context)?.get(step.key)
      if (object === undefined) throw notFound(step)
      return this.#one(context, object, projection)
    }
    if (request.method !== 'PUT' && request.method !== 'PATCH') throw notSupported(request.method)
    const object = this.#writes.update(request.method, target, step, readBody(request.body))
    return this.#one(context, object, projection)
  }

  #list(context: Context, query: SempQuery, rawQuery: string): Answer {
    const { target, echo, monitor } = context
    const { table } = target
    const inherited = inheritedValues(target.parents)
    const projection = this.#projection(context, query.select)
    const filter = query.where.length > 0 ? compileWhere(table, query.where) : null
    const page = readPage(
      this.#collection(context),
      { count: Math.min(query.count ?? DEFAULT_COUNT, table.maximumCount), cursor: query.cursor },
      filter && ((object) => filter(object.values, inherited)),
      { ...this.#model.options.paging, seed: this.#model.options.seed },
    )
    const uri = collectionUriOf(context.base, target.parents, table)
    const shown = page.objects.map((object) => projection(this.#values(context, object), inherited))
    return successAnswer(echo, {
      ...(monitor?.collections && {
        collections: page.objects.map((object) => monitor.collections?.(this.#model, inherited, object)),
      }),
      data: shown,
      links: page.objects.map((object) => linksOf(uri, table, identityOf(object, table))),
      meta: page.cursor === null ? {} : { paging: pagingOf(uri, rawQuery, page.cursor) },
    })
  }

  /** Throws `NOT_FOUND` when a parent is missing. */
  #collection({ target, monitor }: Context): ObjectCollection | undefined {
    const owner = this.#model.owner(target.parents)
    const msgVpnName = target.parents[0]?.key ?? ''
    return monitor?.objects?.(this.#model, msgVpnName) ?? this.#model.childOf(owner, target.table)
  }

  #one(context: Context, object: StoredObject, projection: Projection): Answer {
    const { target, echo, monitor } = context
    const inherited = inheritedValues(target.parents)
    const uri = collectionUriOf(context.base, target.parents, target.table)
    return successAnswer(echo, {
      ...(monitor?.collections && { collections: monitor.collections(this.#model, inherited, object) }),
      data: projection(this.#values(context, object), inherited),
      links: linksOf(uri, target.table, identityOf(object, target.table)),
    })
  }

  #values(context: Context, object: StoredObject) {
    const { monitor, target } = context
    return monitor === null ? object.values : monitor.values(this.#model, inheritedValues(target.parents), object)
  }

  #projection(context: Context, select: string | null): Projection {
    const { table } = context.target
    const cacheKey = `${context.monitor === null ? 'config' : 'monitor'}:${table.definition}:${select ?? '*'}`
    let projection = this.#selections.get(cacheKey)
    if (projection === undefined) {
      projection = makeProjection(table, context.monitor, select)
      if (this.#selections.size >= MAXIMUM_CACHED_SELECTIONS) this.#selections.clear()
      this.#selections.set(cacheKey, projection)
    }
    return projection
  }
}

interface Context {
  readonly request: SempRequest
  readonly echo: RequestEcho
  readonly target: CollectionPath
  readonly monitor: MonitorView | null
  /** Origin and base path. */
  readonly base: string
}

const notSupported = (method: string) =>
  new SempFailure('NOT_SUPPORTED', `Problem with ${method}: The method is not supported for this path.`)

function makeProjection(table: ObjectTable, monitor: MonitorView | null, select: string | null): Projection {
  const readable = monitor?.attributes ?? table.readable
  const all = monitor?.attributes ?? Object.keys(table.attributes)
  if (select === null) return wholeProjection(readable)
  return compileSelect(readable, all, monitor === null ? table : null, select.split(','))
}

function pagingOf(uri: string, rawQuery: string, cursor: string) {
  const others = rawQuery.split('&').filter((part) => part !== '' && !part.startsWith('cursor='))
  return { cursorQuery: cursor, nextPageUri: `${uri}?${[...others, `cursor=${cursor}`].join('&')}` }
}

function readBody(body: string): Readonly<Record<string, unknown>> {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    throw new SempFailure('PARSE_ERROR', 'The JSON content of the request cannot be parsed.')
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new SempFailure('PARSE_ERROR', 'The JSON content of the request is not an object.')
  }
  return parsed as Readonly<Record<string, unknown>>
}

export const hasBody = (method: string | undefined): boolean => method !== undefined && BODY_METHODS.has(method)
