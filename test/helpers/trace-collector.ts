import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { z } from 'zod'

const attribute = z.looseObject({
  key: z.string(),
  value: z.looseObject({
    stringValue: z.string().optional(),
    intValue: z.coerce.number().optional(),
    boolValue: z.boolean().optional(),
  }),
})
const spanSchema = z.looseObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
  attributes: z.array(attribute).default([]),
  status: z.looseObject({ code: z.int().default(0) }).default({ code: 0 }),
})
const request = z.looseObject({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(spanSchema) })),
    }),
  ),
})

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly attributes: Attributes
  readonly failed: boolean
  readonly service: string
}

/** Takes traces over OTLP/HTTP as JSON, and keeps them. */
export class TraceCollector implements AsyncDisposable {
  readonly spans: CollectedSpan[] = []
  /** Bodies as they came. */
  received = ''
  readonly headers: IncomingMessage['headers'][] = []
  readonly #server = createServer((incoming, answer) => {
    this.headers.push(incoming.headers)
    let body = ''
    incoming.setEncoding('utf8')
    incoming.on('data', (part: string) => {
      body += part
    })
    incoming.on('end', () => {
      this.received += body
      if (incoming.url === '/v1/traces') this.#keep(JSON.parse(body))
      answer.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector()
    collector.#server.listen(0, '127.0.0.1')
    await once(collector.#server, 'listening')
    return collector
  }

  get url(): string {
    const address = this.#server.address()
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  }

  #keep(body: unknown): void {
    for (const { resource, scopeSpans } of request.parse(body).resourceSpans) {
      const service = String(toRecord(resource.attributes)['service.name'])
      for (const { attributes, status, ...span } of scopeSpans.flatMap(({ spans }) => spans)) {
        const { traceId, spanId, parentSpanId, name } = span
        const own = { traceId, spanId, parentSpanId: parentSpanId || undefined, name, service }
        this.spans.push({ ...own, attributes: toRecord(attributes), failed: status.code === 2 })
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

const toRecord = (attributes: readonly z.infer<typeof attribute>[]): Attributes =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.boolValue] as const),
  )
