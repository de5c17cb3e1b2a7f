import fc from 'fast-check'
import { type BodySchema, bodies, fitting, type Schemas } from './http-fuzz-bodies.ts'
import { hostileText, idOf, type KnownIds, knownId, plainText, whereText } from './http-fuzz-values.ts'

export interface Operation {
  readonly method: string
  /** `/api/v2/apim/gateways/{messagingServiceId}` */
  readonly path: string
  readonly queries: readonly { readonly name: string; readonly schema: BodySchema }[]
  readonly body: BodySchema | null
  readonly token: 'apiToken' | 'userToken' | 'either'
}

interface Published {
  readonly paths: Readonly<Record<string, Readonly<Record<string, PublishedOperation>>>>
  readonly components?: { readonly schemas?: Schemas }
}
interface PublishedOperation {
  readonly description?: string
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: BodySchema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: BodySchema }>> }
}

/** What an application publishes of itself, as requests are made from it. */
export function operationsOf(published: unknown): {
  readonly operations: readonly Operation[]
  readonly schemas: Schemas
} {
  const { paths, components } = published as Published
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { description = '', parameters = [], requestBody }]): Operation => {
      const needs = /Needs (a user token|an API token)/.exec(description)?.[1]
      const either = description.includes('or an API token')
      return {
        method: method.toUpperCase(),
        path,
        queries: parameters.filter((each) => each.in === 'query'),
        body: requestBody?.content['application/json']?.schema ?? null,
        token: either ? 'either' : needs === 'a user token' ? 'userToken' : 'apiToken',
      }
    }),
  )
  return { operations, schemas: components?.schemas ?? {} }
}

/** A request as it is put on the wire; the token's place is filled then. */
export interface FuzzRequest {
  readonly method: string
  /** Of the operation. */
  readonly path: string
  /** Percent-encoded as it happens to be; one character is one byte. */
  readonly target: string
  readonly headers: readonly Header[]
  readonly token: 'apiToken' | 'userToken' | null
  /** One character is one byte. */
  readonly body: string | null
  /** How much the Content-Length says too much or too little. */
  readonly lengthLie: number
  readonly chunked: boolean
}

const utf8Bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** The ways in which clients write text into an address. */
const encodings: fc.Arbitrary<(text: string) => string> = fc.oneof(
  { weight: 12, arbitrary: fc.constant((text: string) => encodeURIComponent(text.toWellFormed())) },
  { weight: 1, arbitrary: fc.constant((text: string) => utf8Bytes(text)) },
  {
    weight: 1,
    arbitrary: fc.constant((text: string) =>
      [...Buffer.from(text, 'utf8')].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
    ),
  },
)
const RAW = [
  '%',
  '%zz',
  '%2',
  '%00',
  '%2e%2e',
  '..',
  '%2F',
  '..%2f..%2fetc',
  '%ED%A0%80',
  '%F0%9F',
  '%c0%ae',
  '%u0041',
  '\xff',
]
const rawPart = fc.constantFrom(...RAW)
/** A request line cannot hold them. */
const onTheLine = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  text.replaceAll(/[\u0000-\u0020\u007f]/g, (each) => encodeURIComponent(each))

const part = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 20, arbitrary: fc.tuple(text, encodings).map(([each, encode]) => onTheLine(encode(each))) },
    { weight: 1, arbitrary: rawPart },
  )

function pathWith(template: string, segment: (...names: readonly string[]) => fc.Arbitrary<string>) {
  const segments = template.split('/')
  const parts = segments.map((each, index) => {
    const parameter = /^\{(.*)\}$/.exec(each)?.[1]
    return parameter === undefined ? fc.constant(each) : segment(segments[index - 1] ?? '', parameter)
  })
  return fc.tuple(...parts).map((all) => all.join('/'))
}

const rightPath = ({ path }: Operation, { known }: Making): fc.Arbitrary<string> =>
  pathWith(path, (...names) => knownId(known, ...names).map(encodeURIComponent))

function wrongPath({ path }: Operation, { known }: Making): fc.Arbitrary<string> {
  const written = pathWith(path, (...names) => part(idOf(known, ...names)))
  return fc.oneof(
    { weight: 12, arbitrary: written },
    { weight: 1, arbitrary: written.map((each) => `${each}/`) },
    { weight: 1, arbitrary: written.map((each) => each.replace('/', '//')) },
    { weight: 1, arbitrary: fc.tuple(written, rawPart).map((each) => each.join('/')) },
    { weight: 1, arbitrary: written.map((each) => `http://other.example${each}`) },
  )
}

const scalarText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

function rightQuery({ queries }: Operation, making: Making): fc.Arbitrary<string> {
  const pairs = queries.map(({ name, schema }) => {
    const value = name === 'where' ? whereText : fitting(schema, making, name).map(scalarText)
    return value.map((each) => `${name}=${encodeURIComponent(each.toWellFormed())}`)
  })
  return fc
    .tuple(...pairs.map((pair) => fc.option(pair, { freq: 1 })))
    .map((all) => all.filter((pair) => pair !== null).join('&'))
    .map((text) => (text === '' ? '' : `?${text}`))
}

function wrongQuery({ queries }: Operation, making: Making): fc.Arbitrary<string> {
  const pairs = queries.map(({ name, schema }) => {
    const good = name === 'where' ? whereText : fitting(schema, making, name).map(scalarText)
    const value = fc.oneof(good, hostileText, fc.constantFrom(...NUMBERS))
    return part(value).map((each) => `${name}=${each}`)
  })
  const unknown = fc.oneof(
    fc.constantFrom(...UNKNOWN_QUERIES),
    part(plainText).map((name) => `${name}=1`),
    fc.integer({ min: 2, max: 1500 }).map((count) => 'a=1&'.repeat(count)),
  )
  return fc
    .array(fc.oneof(...pairs.map((arbitrary) => ({ weight: 4, arbitrary })), unknown), { minLength: 1, maxLength: 4 })
    .map((all) => `?${all.join('&')}`)
}

const NUMBERS = ['0', '-1', '1.5', '1e3', '101', '16385', '99999999999999999999', ' 1', '']
const UNKNOWN_QUERIES = [
  ...[
    '=',
    '&&',
    'a',
    'a[b]=c',
    '__proto__=x',
    'constructor[prototype]=x',
    'query=a',
    'filter=a',
    '?',
    '#x',
    'a=%',
    '%ff=1',
  ],
  ...['pageSize=1&pageSize=2', 'pageNumber[]=1', 'where=', 'where=a&where=b'],
]

const CONTENT_TYPES = [
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/json;;;',
  'application/json; charset=utf-16',
  'text/plain',
  'application/xml',
  'multipart/form-data; boundary=x',
  'application/x-www-form-urlencoded',
  '',
  ';',
  'a/b/c',
  '*/*',
]
const ACCEPTS = [
  '*/*',
  'application/json',
  'application/xml',
  'text/html',
  'application/x-yaml',
  'application/json;q=0',
  ';;',
  'a',
  '*',
  'application/*;q=1.5, text/plain;q=x',
]
const IF_MATCHES = [
  '*',
  '"x"',
  'W/"x"',
  '""',
  '"',
  ',',
  '"a", "b"',
  '"a" "b"',
  'x',
  '"a"b"',
  '"é"',
  '"'.repeat(999),
  '*, "a"',
  '"\\""',
]
const AUTHORIZATIONS = [
  '',
  'Bearer',
  'Bearer ',
  'Bearer  x',
  'bearer x',
  'Basic YTpi',
  'Bearer é',
  'Bearer km_',
  `Bearer km_${'a'.repeat(11)}_${'b'.repeat(43)}`,
  `Bearer ${'a'.repeat(5000)}`,
  'Bearer a.b.c',
  'Bearer eyJhbGciOiJub25lIn0.e30.',
  'Digest a=b, c="d',
]
/** Of hop-by-hop and other headers that change how a request is read, and of those that a server writes down. */
const OTHERS: readonly Header[] = [
  ['content-encoding', 'gzip'],
  ['transfer-encoding', 'gzip'],
  ['expect', '100-continue'],
  ['expect', 'something'],
  ['upgrade', 'websocket'],
  ['upgrade', 'h2c'],
  ['x-request-id', 'trace-1'],
  ['x-request-id', 'x'.repeat(500)],
  ['x-forwarded-for', "1.2.3.4, ' or 1=1"],
  ['x-http-method-override', 'DELETE'],
  ['range', 'bytes=0-1'],
  ['if-none-match', '*'],
  ['if-modified-since', 'never'],
  ['accept-encoding', 'br;q=1, *;q=0'],
  ['accept-version', '9.x'],
  ['origin', 'https://evil.example'],
  ['access-control-request-method', 'PATCH'],
  ['cookie', '__proto__=1'],
  ['content-length', '5'],
  ['host', 'again.example'],
  ['x-\xe9', '\xff\xfe'],
  ['x-long', 'x'.repeat(7000)],
  ['x-longer', 'x'.repeat(17000)],
]

const headerOf = (name: string, values: readonly string[]): fc.Arbitrary<Header> =>
  fc.constantFrom(...values).map((value) => [name, utf8Bytes(value)] as const)

const wrongHeaders: fc.Arbitrary<readonly Header[]> = fc.array(
  fc.oneof(
    headerOf('content-type', CONTENT_TYPES),
    headerOf('accept', ACCEPTS),
    headerOf('if-match', IF_MATCHES),
    headerOf('authorization', AUTHORIZATIONS),
    { weight: 2, arbitrary: fc.constantFrom(...OTHERS) },
  ),
  { minLength: 1, maxLength: 3 },
)

const METHODS = ['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'SEARCH']

/** What is wrong with a request on purpose; the rest of it is as it should be. */
const ASPECTS = ['nothing', 'revision', 'path', 'query', 'headers', 'body', 'framing', 'everything'] as const
type Aspect = (typeof ASPECTS)[number]

/** Requests for one operation: right, wrong in one way, or wrong in every way. */
export function requestsOf(operation: Operation, schemas: Schemas, known: KnownIds): fc.Arbitrary<FuzzRequest> {
  const weights: Readonly<Record<Aspect, number>> = {
    nothing: 4,
    revision: isSafe(operation.method) ? 0 : 2,
    path: operation.path.includes('{') ? 3 : 1,
    query: operation.queries.length > 0 ? 4 : 1,
    headers: 2,
    body: operation.body === null ? 1 : 5,
    framing: 1,
    everything: 1,
  }
  const each = ASPECTS.map((aspect) => ({
    weight: weights[aspect],
    arbitrary: requestsWrongIn(aspect, operation, { schemas, known }),
  }))
  return fc.oneof(...each).map((request) => Object.assign(request, { [fc.toStringMethod]: () => shown(request) }))
}

interface Making {
  readonly schemas: Schemas
  readonly known: KnownIds
}

function requestsWrongIn(aspect: Aspect, operation: Operation, making: Making): fc.Arbitrary<FuzzRequest> {
  const isWrong = (other: Aspect): boolean => aspect === other || aspect === 'everything'
  const own = operation.token === 'either' ? (['apiToken', 'userToken'] as const) : ([operation.token] as const)
  const queries = isWrong('query') ? wrongQuery(operation, making) : rightQuery(operation, making)
  const isFramed = !isWrong('framing')
  return fc
    .record({
      method: isFramed ? fc.constant(operation.method) : fc.constantFrom(operation.method, ...METHODS),
      target: fc.tuple(isWrong('path') ? wrongPath(operation, making) : rightPath(operation, making), queries),
      token: isWrong('headers')
        ? fc.constantFrom(...own, ...own, 'apiToken', 'userToken', null)
        : fc.constantFrom(...own),
      headers: isWrong('headers') ? wrongHeaders : fc.constant(aspect === 'revision' ? [OF_ANOTHER] : []),
      body: isWrong('body') ? wrongBody(operation, making) : rightBody(operation, making),
      lengthLie: isFramed ? fc.constant(0) : fc.constantFrom(0, 0, -1000, -3, -1, 1, 1000),
      chunked: isFramed ? fc.constant(false) : fc.boolean(),
    })
    .map(({ target, headers, token, body, ...rest }) => ({
      ...rest,
      path: operation.path,
      target: target.join(''),
      headers: [...(body === null || has(headers, 'content-type') ? [] : [JSON_CONTENT]), ...headers],
      // One that is given already is the only one.
      token: has(headers, 'authorization') ? null : token,
      body,
    }))
}

type Header = readonly [name: string, value: string]
const OF_ANOTHER: Header = ['if-match', '"of-another-revision"']
const JSON_CONTENT: Header = ['content-type', 'application/json']
const has = (headers: readonly Header[], name: string): boolean => headers.some(([each]) => each === name)

function rightBody({ body }: Operation, making: Making): fc.Arbitrary<string | null> {
  return body === null ? fc.constant(null) : fitting(body, making).map((value) => utf8Bytes(JSON.stringify(value)))
}

function wrongBody({ body }: Operation, making: Making): fc.Arbitrary<string | null> {
  return fc.oneof(
    { weight: 8, arbitrary: bodies(body ?? {}, making).map(utf8Bytes) },
    { weight: 1, arbitrary: fc.constantFrom(null, '{"name":"\xff\xfe"}', '\x1f\x8b\x08\x00', '{}', 'null', '""') },
  )
}

function shown({ method, target, headers, token, body, lengthLie, chunked }: FuzzRequest): string {
  const lines = [`${method} ${target}`, ...headers.map((each) => each.join(': ')), `token: ${token}`]
  if (lengthLie !== 0) lines.push(`content-length off by ${lengthLie}`)
  if (chunked) lines.push('chunked')
  const text = JSON.stringify(
    [...lines, body ?? '(no body)'].map((line) =>
      line.length > 1500 ? `${line.slice(0, 1500)}… (${line.length})` : line,
    ),
    null,
    1,
  )
  return text
}

export const isSafe = (method: string): boolean =>
  ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY'].includes(method)

/** The bytes of a request, and whether the server would wait for more of it. */
export function bytesOf(
  request: FuzzRequest,
  token: string | null,
): { readonly bytes: Buffer; readonly halfClose: boolean } {
  const { method, target, headers, body, lengthLie, chunked } = request
  const content = Buffer.from(body ?? '', 'latin1')
  const length = Math.max(0, content.length + lengthLie)
  const framing = body === null ? [] : chunked ? ['transfer-encoding: chunked'] : [`content-length: ${length}`]
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'host: keymesh.example',
    'connection: close',
    ...(token === null ? [] : [`authorization: Bearer ${token}`]),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...framing,
  ]
  const isCut = chunked && lengthLie !== 0 && content.length > 0
  const size = isCut ? 'fff' : content.length.toString(16)
  const chunk = content.length === 0 ? '' : `${size}\r\n${content.toString('latin1')}\r\n`
  const sent = body === null ? '' : chunked ? `${chunk}0\r\n\r\n` : content.toString('latin1')
  // Never after a request that is whole: who closes then wants no answer.
  const isShort = body !== null && !chunked && lengthLie > 0
  const isFramedTwice = headers.some(([name]) => name === 'content-length' || name === 'transfer-encoding')
  return {
    bytes: Buffer.from(`${lines.join('\r\n')}\r\n\r\n${sent}`, 'latin1'),
    halfClose: isCut || isShort || isFramedTwice,
  }
}
