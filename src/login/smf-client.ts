import { randomUUID } from 'node:crypto'
import type solace from 'solclientjs'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import { TIMED_OUT } from './deadline.ts'
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
      let library: Solclient
      try {
        library = await loading
      } catch {
        loading = null
        return NOT_INSTALLED
      }
      return logIn(library, request, signal)
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

/** Accepted is a session that is up: the login was answered and the client has subscribed to its own inbox. */
function logIn(library: Solclient, request: SmfLoginRequest, signal: AbortSignal): Promise<Verdict> {
  const { SolclientFactory, SessionEventCode } = library
  return new Promise((resolve) => {
    let session: solace.Session | null = null
    let reached: Verdict | null = null
    let timer: NodeJS.Timeout | undefined
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      // Not below the library's own calls.
      queueMicrotask(() => {
        dispose(session)
        resolve(reached ?? CLOSED)
      })
    }
    const onAbort = (): void => {
      reached ??= TIMED_OUT
      end()
    }
    const fail = (error: unknown): void => {
      reached ??= smfVerdict(failureOf(library, error))
      end()
    }
    if (signal.aborted) {
      onAbort()
      return
    }
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      const opened = SolclientFactory.createSession(new library.SessionProperties(propertiesOf(request)))
      session = opened
      opened.on(SessionEventCode.UP_NOTICE, () => {
        reached ??= ACCEPTED
        timer = setTimeout(end, GOODBYE_MS)
        try {
          opened.disconnect()
        } catch {
          end()
        }
      })
      opened.on(SessionEventCode.CONNECT_FAILED_ERROR, fail)
      opened.on(SessionEventCode.DOWN_ERROR, fail)
      opened.on(SessionEventCode.DISCONNECTED, end)
      opened.connect()
    } catch (error) {
      fail(error)
    }
  })
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
