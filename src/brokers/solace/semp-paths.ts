import type { MemberKind, ObjectKind, ObjectRef } from '../../domain/broker-object.ts'
import { KeymeshError } from '../../domain/errors.ts'
import { KIND_MAPPINGS, type MemberCollection, memberPlace } from './solace-mapping.ts'

/** The largest page of every collection that Keymesh lists (SEMP 2.49). */
export const PAGE_SIZE = 100

/** Percent-encodes all but the unreserved characters of RFC 3986. */
export function encodePart(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

/** The paths of one message VPN below the base URL; names must have been checked. */
export class SempPaths {
  readonly about = '/SEMP/v2/config/about/api'
  readonly msgVpn: string
  readonly #monitorMsgVpn: string

  constructor(msgVpnName: string) {
    this.msgVpn = `/SEMP/v2/config/msgVpns/${encodePart(msgVpnName)}`
    this.#monitorMsgVpn = `/SEMP/v2/monitor/msgVpns/${encodePart(msgVpnName)}`
  }

  collection(kind: ObjectKind): string {
    return `${this.msgVpn}/${KIND_MAPPINGS[kind].collection}`
  }

  object(ref: ObjectRef): string {
    return `${this.collection(ref.kind)}/${encodePart(ref.name)}`
  }

  memberCollection(ref: ObjectRef, members: MemberCollection): string {
    return `${this.object(ref)}/${members.collection}`
  }

  /** A key of two parts is joined by a comma that is not encoded. */
  member(ref: ObjectRef, memberKind: MemberKind, member: string): string {
    const { collection, syntax } = memberPlace(ref.kind, memberKind)
    const key = collection.syntaxAttribute === undefined ? encodePart(member) : `${syntax},${encodePart(member)}`
    return `${this.memberCollection(ref, collection)}/${key}`
  }

  get monitoredClients(): string {
    return `${this.#monitorMsgVpn}/clients`
  }

  monitoredQueue(queueName: string): string {
    return `${this.#monitorMsgVpn}/queues/${encodePart(queueName)}`
  }
}

/** The commas between the names stay as they are. */
export const withSelect = (path: string, attributes: readonly string[]): string =>
  `${path}?select=${attributes.join(',')}`

/** `cursor` is in the encoded form that {@link nextCursor} gives; the values in `where` are encoded, too. */
export function pagePath(path: string, attributes: readonly string[], cursor: string | null, where?: string): string {
  const filter = where === undefined ? '' : `&where=${where}`
  const firstPage = `${withSelect(path, attributes)}${filter}&count=${PAGE_SIZE}`
  return cursor === null ? firstPage : `${firstPage}&cursor=${cursor}`
}

/**
 * The cursor of the next page, ready for a query string, or null on the last page. Whether `cursorQuery` is already
 * percent-encoded is not documented (brokers were seen to encode it), so the text inside `nextPageUri` is preferred:
 * there it is encoded for certain. Its scheme, host and path are never used: they name the broker as it sees itself.
 */
export function nextCursor(paging: { cursorQuery?: string; nextPageUri?: string } | undefined): string | null {
  if (paging === undefined) return null
  const inUri = /[?&]cursor=([^&#]*)/.exec(paging.nextPageUri ?? '')?.[1]
  if (inUri !== undefined && inUri !== '' && isEncoded(inUri)) return inUri
  const cursor = paging.cursorQuery ?? inUri ?? ''
  if (cursor === '') return null
  return isEncoded(cursor) ? cursor : encodePart(cursor)
}

const isEncoded = (text: string): boolean => /^(?:[A-Za-z0-9\-._~!$'()*+,;:@/?=]|%[0-9A-Fa-f]{2})*$/.test(text)

/** Where a broker's SEMP service is. */
export interface SempAddress {
  readonly origin: string
  /** Path of a reverse proxy before `/SEMP/v2`, without a slash at the end; mostly empty. */
  readonly prefix: string
  /** For messages: origin and prefix, never user information or a query. */
  readonly display: string
  readonly isTls: boolean
}

/** Accepts a URL with or without `/SEMP/v2` or `/SEMP/v2/config` at its end. Throws `INVALID_BROKER_URL`. */
export function sempAddress(text: string): SempAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new KeymeshError({
      code: 'INVALID_BROKER_URL',
      fate: 'stop',
      message: 'The management URL of the broker is not an http or https URL.',
      hint: 'Write it as https://HOST:PORT.',
    })
  }
  const prefix = url.pathname.replace(/\/+$/, '').replace(/\/SEMP(\/v2(\/config)?)?$/i, '')
  return { origin: url.origin, prefix, display: url.origin + prefix, isTls: url.protocol === 'https:' }
}
