import type { Logger } from 'pino'
import type { RemoteConfig } from './config.ts'
import { codeOf, errorLine, KeymeshError } from './domain/errors.ts'
import type { AccountId } from './domain/ids.ts'
import { readAsyncApiText } from './portal-file/asyncapi-document.ts'
import { readRemoteCatalogue } from './sources/apim-catalogue.ts'
import { ApimClient } from './sources/apim-client.ts'
import type { UnderstandDocument } from './sources/apim-documents.ts'
import { type ApimTokens, fixedToken, SignInTokens } from './sources/apim-tokens.ts'
import { BoundedHttp } from './sources/bounded-http.ts'
import type { Database } from './store/database.ts'
import { beginPass, type PassPlace, readRemoteStatus, recordFailedPass } from './store/followed-catalogues.ts'
import { readKnownCatalogue } from './store/followed-documents.ts'
import { importRemoteCatalogue, type RemoteImportResult } from './store/import-remote.ts'
import type { RandomSource } from './store/random-source.ts'
import type { Sealer } from './store/sealer-port.ts'

export interface RemoteFollowerOptions {
  readonly db: Database
  readonly sealer: Sealer
  readonly random: RandomSource
  readonly now: () => number
  readonly log: Logger
  /** Which account follows. */
  readonly accountId: AccountId
  readonly remote: RemoteConfig
  /** Names this process in the list of API tokens of the remote. */
  readonly instance: string
  /** Pause before the first repeat of a call; for tests. */
  readonly repeatDelayMs?: number
}

export interface PullOptions {
  /** Says what would change and writes nothing. */
  readonly dryRun?: boolean
  /** The number of deletions that a person agreed to. */
  readonly confirmedDeletions?: number | undefined
  /** Reads every document again. */
  readonly allDocuments?: boolean
  readonly signal?: AbortSignal
}

const REQUEST_TIMEOUT_MS = 30_000
const MAX_CONNECTIONS = 4
/** A pass that takes longer makes room for the next one. */
const PASS_LIMIT_MS = 30 * 60_000
const GOODBYE_MS = 5_000

/** Keeps the account's catalogue and registrations in step with those of another service, one pass at a time. */
export class RemoteFollower {
  readonly #options: RemoteFollowerOptions
  readonly #http = new BoundedHttp({ timeoutMs: REQUEST_TIMEOUT_MS, maxConnections: MAX_CONNECTIONS })
  readonly #tokens: ApimTokens
  readonly #client: ApimClient

  constructor(options: RemoteFollowerOptions) {
    this.#options = options
    const { remote, now, instance, repeatDelayMs } = options
    this.#tokens =
      remote.access.kind === 'token'
        ? fixedToken(remote.access.token)
        : new SignInTokens({ http: this.#http, access: remote.access, now, tokenName: `keymesh ${instance}` })
    this.#client = new ApimClient({
      http: this.#http,
      tokens: this.#tokens,
      url: remote.url,
      ...(repeatDelayMs === undefined ? {} : { repeatDelayMs }),
    })
  }

  /** What a person asks for. Throws what went wrong; nothing is written then but that it did. */
  async pull(options: PullOptions = {}): Promise<RemoteImportResult> {
    const { db, accountId, remote, now } = this.#options
    if (options.dryRun === true) return await this.#read(null, options)
    const pass = await beginPass(db, accountId, { origin: remote.url, atMs: now() })
    try {
      return await this.#read(pass, options)
    } catch (error) {
      // A process that stops says nothing about the remote.
      if (options.signal?.aborted !== true) await this.#recordFailure({ accountId, pass }, error)
      throw error
    }
  }

  /**
   * What the schedule asks for: a remote that fails is logged and asked again at the next tick. True when registrations
   * are to be reconciled for what changed.
   */
  async poll(signal: AbortSignal): Promise<boolean> {
    const { db, accountId, log } = this.#options
    const before = await readRemoteStatus(db, accountId)
    try {
      const result = await this.pull({ signal })
      if (!result.superseded) this.#report(result, before?.warnings ?? [])
      return result.raised.length > 0
    } catch (error) {
      if (signal.aborted) throw error
      const failure = { code: codeOf(error), error: errorLine(error) }
      log.warn(
        { event: 'remote.failed', ...failure },
        'The remote catalogue could not be read; everything stays as it is',
      )
      return false
    }
  }

  async close(): Promise<void> {
    // The remote may be away; what is left there is an API token with the name of this process.
    const impatient = new Promise<void>((resolve) => setTimeout(resolve, GOODBYE_MS).unref())
    await Promise.race([this.#tokens.close(), impatient])
    await this.#http.close()
  }

  async #read(pass: number | null, options: PullOptions): Promise<RemoteImportResult> {
    const { db, sealer, random, accountId, remote, now } = this.#options
    const deadline = AbortSignal.timeout(PASS_LIMIT_MS)
    const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline])
    try {
      const catalogue = await readRemoteCatalogue({
        client: this.#client,
        known: await readKnownCatalogue(db, accountId),
        understand,
        nowMs: now(),
        allDocuments: options.allDocuments ?? false,
        signal,
      })
      return await importRemoteCatalogue({ db, sealer, random, nowMs: now }, accountId, catalogue, {
        origin: remote.url,
        pass,
        confirmedDeletions: options.confirmedDeletions,
      })
    } catch (error) {
      throw deadline.aborted && options.signal?.aborted !== true ? tooSlow(remote.url) : error
    }
  }

  async #recordFailure(place: PassPlace, error: unknown): Promise<void> {
    const { db, now } = this.#options
    const failure = { atMs: now(), code: codeOf(error), message: errorLine(error) }
    // When even that fails, the database is what is wrong, and the error says so.
    await recordFailedPass(db, place, failure).catch(() => undefined)
  }

  /** A warning is told when it is new, not every minute. */
  #report({ changes, raised, warnings, unmanagedBrokers }: RemoteImportResult, told: readonly string[]): void {
    const { log } = this.#options
    for (const warning of warnings) {
      if (!told.includes(warning))
        log.warn({ event: 'remote.warning', warning }, 'The remote catalogue holds what cannot be used')
    }
    if (changes.length === 0) return
    const count = (type: string): number => changes.filter((change) => change.type === type).length
    const counts = {
      created: count('create'),
      updated: count('update'),
      removed: count('delete'),
      raised: raised.length,
    }
    const unmanaged = unmanagedBrokers.map(({ id }) => id)
    log.info({ event: 'remote.followed', ...counts, unmanaged }, 'The remote catalogue changed')
  }
}

const understand: UnderstandDocument = async (name, text) => {
  const { version, title, viewpoint, channels, document } = await readAsyncApiText(name, text)
  return { asyncApiVersion: version, title, viewpoint, channels, json: document }
}

const tooSlow = (url: string): KeymeshError =>
  new KeymeshError({
    code: 'REMOTE_TIMEOUT',
    fate: 'retry',
    message: `${new URL(url).host} did not give its catalogue within ${PASS_LIMIT_MS / 60_000} minutes.`,
    hint: 'Nothing was changed.',
  })
