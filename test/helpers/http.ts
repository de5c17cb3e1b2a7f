import pino, { type Logger } from 'pino'
import type { Config } from '../../src/config.ts'
import { toConfig } from '../../src/config.ts'
import { Disposer } from '../../src/disposer.ts'
import { type AccountId, accountId } from '../../src/domain/ids.ts'
import { PERMISSIONS, type Permission, type UserRole } from '../../src/domain/permissions.ts'
import { Secret } from '../../src/domain/secret.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { apiTokenHash, apiTokenText } from '../../src/http/authentication.ts'
import type { HttpDependencies } from '../../src/http/dependencies.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import { Observer } from '../../src/observability/observer.ts'
import { NO_TRACING } from '../../src/observability/tracing.ts'
import type { Enqueuer } from '../../src/queue/enqueue.ts'
import { newKeyRing } from '../../src/secrets/key-ring.ts'
import { createPasswords } from '../../src/secrets/passwords.ts'
import { createSealer } from '../../src/secrets/seal.ts'
import { createUserTokens } from '../../src/secrets/user-tokens.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { createApiToken } from '../../src/store/api-tokens.ts'
import { type Database, openDatabase } from '../../src/store/database.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { insertUser } from '../../src/store/users.ts'
import { createTestDatabase } from './database.ts'

export const TEST_PASSWORD = 'correct horse battery'

export interface ApiOptions {
  /** Settings beyond the defaults; there is no rate limit unless one is given. */
  readonly env?: Readonly<Record<string, string>>
  readonly log?: Logger
  /** What to give the application instead of its own. */
  readonly dependencies?: Partial<HttpDependencies>
}

/** What `withApi` keeps of the jobs that routes asked for. */
export interface EnqueuedWork {
  readonly kind: 'registration' | 'pairs' | 'sweep' | 'verify' | 'notifications'
  readonly what: unknown
}

export interface Answer<Body = unknown> {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  /** Parsed JSON; the text when it is none, null when it is empty. */
  readonly body: Body
}

export interface CallOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Instead of the administrator's API token; null for none. */
  readonly token?: string | null
}

export interface TestUser {
  readonly id: string
  readonly name: string
  readonly userToken: string
  /** With the permissions that were asked for. */
  readonly apiToken: string
}

export interface TestApi extends AsyncDisposable {
  readonly app: App
  readonly db: Database
  readonly dependencies: HttpDependencies
  readonly config: Config
  readonly connectionString: string
  /** The account `default`. */
  readonly accountId: AccountId
  /** Of an administrator of the account `default`: an API token with all ten permissions, and a user token. */
  readonly token: string
  readonly userToken: string
  readonly enqueued: EnqueuedWork[]
  /** Sets the clock; it stands still until then at the time of the start. */
  setNow(nowMs: number): void
  /** `api.call('GET', '/api/v0/user')` as the administrator. */
  call<Body = unknown>(method: Method, path: string, options?: CallOptions): Promise<Answer<Body>>
  /** A user of an account, made without the API. */
  addUser(user: NewTestUser): Promise<TestUser>
  /** Of any account; with these permissions, all ten when absent. */
  apiToken(userId: string, account: AccountId, permissions?: readonly Permission[]): Promise<string>
}

export interface NewTestUser {
  readonly name: string
  readonly account?: string
  readonly roles?: readonly UserRole[]
  readonly permissions?: readonly Permission[]
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'

/**
 * `await using api = await withApi()`: the application on a database of its own, with an administrator. Every answer is
 * checked against the schema of its route. Requests go through `inject`; no port is opened.
 */
export async function withApi(options: ApiOptions = {}): Promise<TestApi> {
  const opened = new Disposer()
  try {
    return await open(options, opened)
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

async function open(options: ApiOptions, opened: Disposer): Promise<TestApi> {
  const database = await createTestDatabase()
  opened.defer(() => database.drop())
  const { connectionString } = database
  const { db, close } = openDatabase({ connectionString, maxConnections: 10, onIdleError: () => undefined })
  opened.defer(close)
  const config = toConfig({ env: { KEYMESH_RATE_LIMIT: '0', ...options.env }, pid: 1, hostname: 'test' })
  const clock = { nowMs: Date.now() }
  const now = (): number => clock.nowMs
  const ring = newKeyRing()
  const enqueued: EnqueuedWork[] = []
  const log = options.log ?? pino({ level: 'silent' })
  const metrics = new Metrics()
  const dependencies: HttpDependencies = {
    db,
    sealer: createSealer(ring),
    now,
    log,
    config,
    enqueue: recordingEnqueuer(enqueued),
    random: cryptoRandom,
    engine: noEngine,
    passwords: quickPasswords,
    userTokens: createUserTokens({ ring: async () => ring, now }),
    metrics,
    observe: new Observer({ metrics, tracing: NO_TRACING, log }).request,
    checkAnswers: true,
    ...options.dependencies,
  }
  const app = await createApp(dependencies)
  opened.defer(() => app.close())
  await app.ready()
  const people = peopleOf(dependencies)
  const administrator = await people.addUser({ name: 'admin' })
  return {
    app,
    db,
    dependencies,
    config,
    connectionString,
    accountId: accountId('default'),
    token: administrator.apiToken,
    userToken: administrator.userToken,
    enqueued,
    setNow: (nowMs) => {
      clock.nowMs = nowMs
    },
    call: callerOf(app, administrator.apiToken),
    ...people,
    [Symbol.asyncDispose]: () => opened.dispose(),
  }
}

/** Calls of the application by whoever has this token. */
export function callerOf(app: App, ownToken: string): TestApi['call'] {
  return async <Body>(method: Method, path: string, options: CallOptions = {}): Promise<Answer<Body>> => {
    const { body, token = ownToken } = options
    const response = await app.inject({
      method,
      url: path,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...options.headers },
      ...(body === undefined ? {} : { payload: body as object }),
    })
    return { status: response.statusCode, headers: response.headers, body: parsed(response.body) as Body }
  }
}

function parsed(text: string): unknown {
  if (text === '') return null
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

type PeopleDependencies = Pick<HttpDependencies, 'db' | 'now' | 'passwords' | 'userTokens' | 'random'>

export function peopleOf(dependencies: PeopleDependencies): Pick<TestApi, 'addUser' | 'apiToken'> {
  const { db, now, passwords, userTokens, random } = dependencies
  const apiToken: TestApi['apiToken'] = async (userId, account, permissions = PERMISSIONS) => {
    const [id, secret] = [random.token(11), random.token(43)]
    const secretHash = apiTokenHash(secret)
    const times = { createdAtMs: now(), expiresAtMs: null }
    await createApiToken(db, { id, accountId: account, userId, name: 'test', secretHash, permissions, ...times })
    return apiTokenText(id, secret)
  }
  return {
    apiToken,
    addUser: async ({ name, account = 'default', roles = ['administrator'], permissions }) => {
      const inAccount = await ensureAccount(db, account)
      const id = random.token(11)
      const passwordHash = await passwords.hash(new Secret(TEST_PASSWORD))
      await insertUser(db, { id, name, passwordHash, accountId: inAccount, roles })
      const userToken = await userTokens.issue({ userId: id, accountId: null, generation: 1 }, 3_600_000)
      return { id, name, userToken, apiToken: await apiToken(id, inAccount, permissions) }
    },
  }
}

/** One real hash, so that many tests do not pay for many. */
const real = createPasswords()
let testHash: Promise<string> | undefined
export const quickPasswords: HttpDependencies['passwords'] = {
  hash: (password) => {
    if (password.reveal() !== TEST_PASSWORD) return real.hash(password)
    testHash ??= real.hash(password)
    return testHash
  },
  verify: real.verify,
}

export function recordingEnqueuer(enqueued: EnqueuedWork[]): Enqueuer {
  const record = (kind: EnqueuedWork['kind'], what: unknown): Promise<boolean> => {
    enqueued.push({ kind, what })
    return Promise.resolve(true)
  }
  return {
    registration: (account, registration) =>
      record('registration', { accountId: account, registrationId: registration }),
    pairs: (pairs, trigger) => record('pairs', { pairs, trigger }),
    sweep: (broker, trigger) => record('sweep', { broker, trigger }),
    verify: (broker, what) => record('verify', { broker, ...what }),
    notifications: (endpoints) => record('notifications', endpoints),
  }
}

const refuse = () => {
  throw new Error('this test has no engine')
}
export const noEngine: HttpDependencies['engine'] = {
  planPair: async () => refuse(),
  planBroker: refuse,
  reconcilePair: async () => refuse(),
  sweep: async () => refuse(),
  verify: refuse,
  orphans: async () => refuse(),
  deleteOrphans: async () => refuse(),
}
