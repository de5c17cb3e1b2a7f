import type { Span, SpanKind, Tracer } from '@opentelemetry/api'
import type { TracesConfig } from '../config.ts'
import { codeOf } from '../domain/errors.ts'
import { type Activity, currentActivity, withActivity } from './activity.ts'

/** Counts, codes and names that a trace may hold: of brokers, routes, jobs and kinds of objects, never of registrations. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

export interface SpanStart {
  readonly name: string
  readonly kind: 'server' | 'client' | 'producer' | 'consumer' | 'internal'
  readonly attributes?: SpanAttributes
  /** As `traceparent` gives it. Without one the span that is under way is the parent, if any. */
  readonly parent?: string | undefined
}

export interface OpenSpan {
  /** For `withActivity`: what happens in it is below this span. */
  readonly activity: Activity
  set(attributes: SpanAttributes): void
  /** The error's code is kept, nothing else of it. */
  end(error?: unknown): void
}

export interface Tracing {
  /** Runs `work` in a span of its own, which fails when it throws. */
  span<Result>(start: SpanStart, work: (span: OpenSpan) => Promise<Result>): Promise<Result>
  begin(start: SpanStart): OpenSpan
  /** What ended just now and took so long. */
  record(start: SpanStart, seconds: number, errorCode: string | null): void
  /** Of the span that is under way, for who goes on with it elsewhere: `00-TRACE-SPAN-FLAGS` (W3C Trace Context). */
  traceparent(): string | undefined
  /** Sends what was not sent yet, and waits no longer than a moment for it. */
  close(): Promise<void>
}

const NO_SPAN: OpenSpan = { activity: {}, set: () => undefined, end: () => undefined }

/** Costs nothing: where no collector was named. */
export const NO_TRACING: Tracing = {
  span: (_start, work) => work(NO_SPAN),
  begin: () => NO_SPAN,
  record: () => undefined,
  traceparent: () => undefined,
  close: () => Promise.resolve(),
}

const CLOSE_PATIENCE_MS = 3_000

/** Loads the OpenTelemetry SDK only here, and registers nothing globally: several may be open in one process. */
export async function openTracing(
  config: TracesConfig | null,
  { closePatienceMs = CLOSE_PATIENCE_MS } = {},
): Promise<Tracing> {
  if (config === null) return NO_TRACING
  const [api, node, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const exporter = new OTLPTraceExporter({ url: config.url, headers: config.headers?.reveal() ?? {} })
  const { AlwaysOffSampler, AlwaysOnSampler, ParentBasedSampler, TraceIdRatioBasedSampler } = node
  const root = {
    always_on: () => new AlwaysOnSampler(),
    always_off: () => new AlwaysOffSampler(),
    traceidratio: () => new TraceIdRatioBasedSampler(config.sampledShare),
  }[config.sampler]()
  const provider = new node.NodeTracerProvider({
    resource: resourceFromAttributes({ ...config.resource }),
    sampler: config.followsParent ? new ParentBasedSampler({ root }) : root,
    spanProcessors: [new node.BatchSpanProcessor(exporter)],
  })
  const close = async (): Promise<void> => {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closePatienceMs)
    })
    // A collector that is away costs the last spans and nothing else.
    await Promise.race([provider.shutdown().catch(() => undefined), patience])
    clearTimeout(timer)
  }
  return tracingOf(api, provider.getTracer('keymesh'), close)
}

type Api = typeof import('@opentelemetry/api')

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

function tracingOf(api: Api, tracer: Tracer, close: () => Promise<void>): Tracing {
  const kinds: Readonly<Record<SpanStart['kind'], SpanKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    producer: api.SpanKind.PRODUCER,
    consumer: api.SpanKind.CONSUMER,
    internal: api.SpanKind.INTERNAL,
  }
  const current = (): Span | undefined => currentActivity().span as Span | undefined
  const parentOf = (parent: string | undefined) => {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(parent ?? '') ?? []
    if (traceId !== undefined && spanId !== undefined) {
      const context = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true }
      if (api.isSpanContextValid(context)) return api.trace.setSpanContext(api.ROOT_CONTEXT, context)
    }
    const span = current()
    return span === undefined ? api.ROOT_CONTEXT : api.trace.setSpan(api.ROOT_CONTEXT, span)
  }
  const start = ({ name, kind, attributes = {}, parent }: SpanStart, startTime?: number): Span => {
    const options = { kind: kinds[kind], attributes: { ...attributes }, ...(startTime !== undefined && { startTime }) }
    return tracer.startSpan(name, options, parentOf(parent))
  }
  const fail = (span: Span, code: string): void => {
    span.setAttribute('error.type', code)
    span.setStatus({ code: api.SpanStatusCode.ERROR })
  }
  const begin = (asked: SpanStart): OpenSpan => {
    const span = start(asked)
    return {
      activity: { span, traceId: span.spanContext().traceId },
      set: (attributes) => void span.setAttributes({ ...attributes }),
      end: (error) => {
        if (error !== undefined) fail(span, codeOf(error))
        span.end()
      },
    }
  }
  return {
    begin,
    span: async (asked, work) => {
      const span = begin(asked)
      try {
        const result = await withActivity(span.activity, () => work(span))
        span.end()
        return result
      } catch (error) {
        span.end(error)
        throw error
      }
    },
    record: (asked, seconds, errorCode) => {
      const endedAtMs = Date.now()
      const span = start(asked, endedAtMs - seconds * 1000)
      if (errorCode !== null) fail(span, errorCode)
      span.end(endedAtMs)
    },
    traceparent: () => {
      const context = current()?.spanContext()
      if (context === undefined) return undefined
      return `00-${context.traceId}-${context.spanId}-${context.traceFlags.toString(16).padStart(2, '0')}`
    },
    close,
  }
}
