import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { codeOf, KeymeshError } from '../../domain/errors.ts'
import { failureOf } from '../errors.ts'

/** Proxies in front end an answer that is silent for long. */
const SAY_ALIVE_EVERY_MS = 15_000
/** A request that cannot be done is refused before this, with its own status; whatever takes longer is on its way. */
const REFUSED_WITHIN_MS = 1_000
/** For the route: a sweep of a large broker takes minutes. */
export const STREAM_TIMEOUT_MS = 24 * 3_600_000

export const NDJSON = 'application/x-ndjson; charset=utf-8'

/** The schema of such an answer. */
export const eventStream = (what: string) => ({
  200: {
    description:
      `${what} One JSON document a line: \`{"type":"event","event":…}\`, at the end \`{"type":"end"}\`, or ` +
      '`{"type":"error"}` with code and message. Empty lines say that the work goes on. It ends when the caller leaves.',
    content: { 'application/x-ndjson': { schema: z.unknown() } },
  },
})

/** The streams of one application: they end before it closes. */
export class EventStreams {
  readonly #running = new Set<Promise<void>>()
  readonly #stopping = new AbortController()

  /** Answers with the events of `work` as they come; throws when it refuses the request before the first is due. */
  async send<Event>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (signal: AbortSignal) => AsyncIterable<Event>,
  ): Promise<FastifyReply> {
    const left = new AbortController()
    reply.raw.once('close', () => left.abort(new Error('the caller left')))
    const signal = AbortSignal.any([left.signal, this.#stopping.signal])
    const events = work(signal)[Symbol.asyncIterator]()
    const first = events.next()
    await Promise.race([first, within(REFUSED_WITHIN_MS)]).catch((error: unknown) => {
      // What went wrong on a broker is told in the stream, in full; a request that cannot be done has its own status.
      if (failureOf(error).status < 500) throw error
    })
    const body = new PassThrough()
    // A caller that left is known by the signal.
    body.on('error', () => undefined)
    const running = write(body, events, first, request, signal).finally(() => this.#running.delete(running))
    this.#running.add(running)
    return reply.type(NDJSON).header('x-accel-buffering', 'no').send(body)
  }

  /** Ends what runs, and waits for its end. */
  async stop(): Promise<void> {
    this.#stopping.abort(
      new KeymeshError({ code: 'STOPPING', fate: 'retry', message: 'The service stops.', hint: 'Ask again.' }),
    )
    await Promise.all(this.#running)
  }
}

async function within(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms).unref())
}

async function write<Event>(
  body: PassThrough,
  events: AsyncIterator<Event>,
  first: Promise<IteratorResult<Event>>,
  request: FastifyRequest,
  signal: AbortSignal,
): Promise<void> {
  const alive = setInterval(() => body.write('\n'), SAY_ALIVE_EVERY_MS)
  const put = async (line: object): Promise<void> => {
    if (!body.write(`${JSON.stringify(line)}\n`)) await once(body, 'drain', { signal })
  }
  try {
    for (let next = await first; next.done !== true; next = await events.next()) {
      await put({ type: 'event', event: next.value })
    }
    body.write('{"type":"end"}\n')
  } catch (error) {
    body.write(`${JSON.stringify({ type: 'error', ...told(error, request) })}\n`)
  } finally {
    clearInterval(alive)
    // The reader of the events left them: the work ends with it.
    await events.return?.().catch(() => undefined)
    body.end()
  }
}

/** Our own errors are for a person; what is not ours is for the log. */
function told(error: unknown, request: FastifyRequest) {
  if (error instanceof KeymeshError) {
    return { code: error.code, message: error.message, ...(error.hint === undefined ? {} : { hint: error.hint }) }
  }
  const { answer } = failureOf(error)
  const { errorId, message } = answer
  request.log.error({ event: 'http.failed', errorId, err: error }, 'A stream failed')
  return { code: codeOf(error), message: `${message} (${errorId})` }
}
