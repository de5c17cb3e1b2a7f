import { randomUUID } from 'node:crypto'
import type solace from 'solclientjs'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import { TIMED_OUT } from './deadline.ts'
import { OwnedSockets } from './owned-sockets.ts'
import { type SmfFailure, smfVerdict } from './smf-answer.ts'

/** One login, in plain values that can be handed to a thread. */
export interface SmfLoginRequest {
  /** `tcp://host:port`, `tcps:` with TLS. */
  readonly url: string
  readonly msgVpnName: string
  readonly username: string
  readonly password: string
  readonly compressed: boolean
  /** The path of trusted PEM certificates; the system's when null. */
  readonly trustFile: string | null
  /** What the certificate's common name must be among, instead of the library's own check of its name. */
  readonly commonNames: readonly string[] | null
  readonly timeoutMs: number
}

/** Logs in once and leaves; the connection is gone when the promise resolves. Never rejects. */
export interface SmfClient {
  logIn(request: SmfLoginRequest, signal: AbortSignal): Promise<Verdict>
  close(): void
}

export type Solclient = typeof solace

/** For the broker to hear our goodbye. */
const GOODBYE_MS = 500
/** 1 to 9; how much is saved of a login's few bytes does not matter. */
const COMPRESSION_LEVEL = 1

const ACCEPTED: Verdict = { outcome: 'accepted' }
const CLOSED = notVerified('closed', 'The connection was closed before the login was answered.')
const NOT_INSTALLED = notVerified(
  'client-not-installed',
  'The optional package solclientjs is not installed, or it cannot be loaded.',
)

/** solclientjs in this very thread, loaded at the first login. What is missing or broken is tried again each time. */
export function createSmfClient(load: () => Promise<Solclient>): SmfClient {
  let loading: Promise<Solclient> | null = null
  return {
    async logIn(request, signal) {
      loading ??= load().then(initialise)
      const tried = loading
      let library: Solclient | null
      try {
        library = await unlessAborted(tried, signal)
      } catch {
        if (loading === tried) loading = null
        return NOT_INSTALLED
      }
      if (library === null) return TIMED_OUT
      return new SmfLoginRun(library).run(request, signal)
    },
    close() {},
  }
}

/** Takes effect once for the process, whoever calls it again; without it the library prints what it does. */
function initialise(library: Solclient): Solclient {
  const silent = (): void => {}
  library.SolclientFactory.init(
    new library.SolclientFactoryProperties({
      profile: library.SolclientFactoryProfiles.version10_5,
      logLevel: library.LogLevel.FATAL,
      logger: new library.LogImpl(silent, silent, silent, silent, silent, silent),
    }),
  )
  return library
}

/** One session. Accepted is one that is up: the login was answered, and the client has subscribed to its own inbox. */
class SmfLoginRun {
  readonly #library: Solclient
  readonly #sockets = new OwnedSockets()
  #session: solace.Session | null = null
  #reached: Verdict | null = null
  #goodbye: NodeJS.Timeout | undefined
  #leave: () => void = () => {}

  constructor(library: Solclient) {
    this.#library = library
  }

  run(request: SmfLoginRequest, signal: AbortSignal): Promise<Verdict> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#sockets.close()
        this.#end(TIMED_OUT)
      }
      this.#leave = (): void => {
        this.#leave = () => {}
        // Not below the library's own calls.
        queueMicrotask(async () => {
          dispose(this.#session)
          // The library forgets a connection that is not there yet, and one whose answer it cannot inflate.
          if (this.#reached?.outcome === 'accepted') await this.#sockets.end()
          else this.#sockets.close()
          clearTimeout(this.#goodbye)
          signal.removeEventListener('abort', onAbort)
          resolve(this.#reached ?? CLOSED)
        })
      }
      if (signal.aborted) {
        onAbort()
        return
      }
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        this.#connect(request)
      } catch (error) {
        this.#fail(error)
      }
    })
  }

  #connect(request: SmfLoginRequest): void {
    const { SolclientFactory, SessionEventCode, SessionProperties } = this.#library
    const session = SolclientFactory.createSession(new SessionProperties(propertiesOf(request)))
    this.#session = session
    session.on(SessionEventCode.UP_NOTICE, () => this.#onUp(session))
    session.on(SessionEventCode.CONNECT_FAILED_ERROR, (error) => this.#fail(error))
    session.on(SessionEventCode.DOWN_ERROR, (error) => this.#fail(error))
    session.on(SessionEventCode.DISCONNECTED, () => this.#leave())
    this.#sockets.run(() => session.connect())
  }

  #onUp(session: solace.Session): void {
    this.#reached ??= ACCEPTED
    this.#goodbye = setTimeout(() => {
      this.#sockets.close()
      this.#leave()
    }, GOODBYE_MS)
    try {
      session.disconnect()
    } catch {
      this.#leave()
    }
  }

  #fail(error: unknown): void {
    this.#end(smfVerdict(failureOf(this.#library, error)))
  }

  #end(verdict: Verdict): void {
    this.#reached ??= verdict
    this.#leave()
  }
}

function propertiesOf(request: SmfLoginRequest) {
  return {
    url: request.url,
    vpnName: request.msgVpnName,
    userName: request.username,
    password: request.password,
    // For whoever reads the broker's list of clients; each client needs a name of its own.
    clientName: `keymesh-probe-${randomUUID()}`,
    // The library would repeat a login that the broker refused, twenty times and without a word.
    connectRetries: 0,
    reconnectRetries: 0,
    connectTimeoutInMsecs: Math.max(1, Math.ceil(request.timeoutMs)),
    ...(request.compressed && { compressionLevel: COMPRESSION_LEVEL }),
    ...(request.trustFile !== null && { sslTrustStores: [request.trustFile] }),
    ...(request.commonNames !== null && { sslTrustedCommonNameList: [...request.commonNames] }),
  }
}

function dispose(session: solace.Session | null): void {
  try {
    session?.dispose()
  } catch {
    // It is disposed.
  }
}

function failureOf({ ErrorSubcode }: Solclient, error: unknown): SmfFailure {
  const { subcode, errorSubcode, responseCode, infoStr } = Object(error) as Readonly<Record<string, unknown>>
  const number = errorSubcode ?? subcode
  const name = Object.entries(ErrorSubcode).find(([, value]) => value === number)?.[0]
  return {
    subcode: name ?? 'UNKNOWN_ERROR',
    responseCode: typeof responseCode === 'number' ? responseCode : null,
    text: String(infoStr ?? ''),
  }
}

/** Null when that comes first; the promise is then left alone. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
  if (signal.aborted) return Promise.resolve(null)
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(null)
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
