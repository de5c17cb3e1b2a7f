import { Buffer } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'

export interface HttpAnswer {
  readonly status: number
  readonly setCookie: readonly string[]
  readonly body: Buffer
}

export interface HttpRequest {
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/**
 * One request and its whole answer, through the dispatcher's own callbacks: a sweep sends tens of thousands, and a
 * response stream for each would cost more than all the rest. Rejects with undici's error, the signal's reason, or
 * `timedOut` when the answer is not complete in `timeoutMs`, wherever it hangs.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: HttpRequest,
  limits: { readonly timeoutMs: number; readonly timedOut: Error; readonly signal?: AbortSignal | undefined },
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    limits.signal?.throwIfAborted()
    const handler = new ExchangeHandler(resolve, reject, limits)
    dispatcher.dispatch(
      { path: request.path, method: request.method, headers: request.headers, body: request.body ?? null },
      handler,
    )
  })
}

class ExchangeHandler implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: HttpAnswer) => void
  readonly #reject: (error: unknown) => void
  readonly #signal: AbortSignal | undefined
  readonly #onAbort: () => void
  readonly #timer: NodeJS.Timeout
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | null = null
  #failure: Error | null = null
  #status = 0
  #setCookie: readonly string[] = []

  constructor(
    resolve: (answer: HttpAnswer) => void,
    reject: (error: unknown) => void,
    limits: { readonly timeoutMs: number; readonly timedOut: Error; readonly signal?: AbortSignal | undefined },
  ) {
    this.#resolve = resolve
    this.#reject = reject
    this.#signal = limits.signal
    this.#onAbort = () => this.#giveUp(toError(this.#signal?.reason))
    this.#signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#timer = setTimeout(() => this.#giveUp(limits.timedOut), Math.max(0, limits.timeoutMs))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Given up while it waited for a connection: the broker must not see it any more.
    if (this.#failure !== null) controller.abort(this.#failure)
    else this.#controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status
    const setCookie: string | string[] | undefined = headers['set-cookie']
    if (setCookie !== undefined) this.#setCookie = Array.isArray(setCookie) ? setCookie : [setCookie]
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.#settle()
    const [first] = this.#chunks
    const body = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
    this.#resolve({ status: this.#status, setCookie: this.#setCookie, body })
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle()
    this.#reject(error)
  }

  #giveUp(failure: Error): void {
    this.#failure = failure
    this.#settle()
    this.#controller?.abort(failure)
    this.#reject(failure)
  }

  #settle(): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}

const toError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error('aborted'))
