import { addForeignClient, breakBrokers } from '../../src/demo/breakages.ts'
import { withNewcomer } from '../../src/demo/demo-catalogue.ts'
import { Disposer } from '../../src/disposer.ts'
import { type App, createApp } from '../../src/http/app.ts'
import type { HttpDependencies } from '../../src/http/dependencies.ts'
import { ALL_LOGIN_PORTS } from '../../src/sandbox/login/login-listeners.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type EnqueuedWork, peopleOf, quickPasswords, recordingEnqueuer, type TestApi } from './http.ts'
import { EXAMPLE_SANDBOX, exampleCatalogue, type TestMesh, withMesh } from './mesh.ts'

export interface ConsoleOptions {
  /** Simulated brokers that clients can log in to, so that there are verdicts; slower. */
  readonly logins?: boolean
  readonly dependencies?: Partial<HttpDependencies>
}

/**
 * `await using world = await withConsole()`: the sample catalogue on three simulated brokers, reconciled once, then broken by
 * hand and swept again, so that there are registrations, access requests, runs, drift that was repaired and a conflict; and
 * the application that serves its console, at `url` and through `app.inject`.
 */
export interface ConsoleWorld extends Pick<TestApi, 'addUser'>, AsyncDisposable {
  readonly mesh: TestMesh
  readonly app: App
  readonly dependencies: HttpDependencies
  /** `http://127.0.0.1:…` */
  readonly url: string
  /** Jobs that pages asked for; nothing runs them. */
  readonly enqueued: EnqueuedWork[]
  /** The value of the session cookie of the administrator `admin`, whose password is `TEST_PASSWORD`. */
  readonly adminSession: string
  /** Of the user `reader`, who may look and not change. */
  readonly readerSession: string
  /** A page as this session sees it; null for nobody. */
  page(path: string, session?: string | null): Promise<ConsoleAnswer>
  /** A form as a browser posts it. */
  post(path: string, fields?: Readonly<Record<string, string>>, session?: string | null): Promise<ConsoleAnswer>
}

export interface ConsoleAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  readonly html: string
}

export async function withConsole(options: ConsoleOptions = {}): Promise<ConsoleWorld> {
  const opened = new Disposer()
  try {
    const mesh = await brokenMesh(options)
    opened.defer(() => mesh[Symbol.asyncDispose]())
    return await serve(mesh, options, opened)
  } catch (error) {
    await opened.dispose()
    throw error
  }
}

async function brokenMesh({ logins = false }: ConsoleOptions): Promise<TestMesh> {
  const { username, password, msgVpnName } = EXAMPLE_SANDBOX
  const mesh = await withMesh({
    brokers: 3,
    sandbox: { username, password, msgVpnName, ...(logins ? { logins: ALL_LOGIN_PORTS } : {}) },
  })
  const { messaging } = mesh.brokers[0] ?? {}
  if (messaging === undefined) throw new Error('a mesh without brokers')
  const sample = await exampleCatalogue(mesh.sandbox)
  const brokers = sample.brokers.map((broker, index) => ({
    ...broker,
    messaging: mesh.brokers[index]?.messaging ?? messaging,
  }))
  const file = { ...sample, brokers }
  await mesh.import(file)
  await mesh.sweepAll()
  breakBrokers(
    mesh.sandbox,
    brokers.map(({ id }) => id),
    [],
  )
  addForeignClient(mesh.broker(0))
  await mesh.import(withNewcomer(file))
  await mesh.sweepAll()
  return mesh
}

async function serve(mesh: TestMesh, options: ConsoleOptions, opened: Disposer): Promise<ConsoleWorld> {
  const { context } = mesh
  const enqueued: EnqueuedWork[] = []
  const dependencies: HttpDependencies = {
    ...context,
    config: { ...context.config, rateLimitPerMinute: 0 },
    enqueue: recordingEnqueuer(enqueued),
    random: cryptoRandom,
    passwords: quickPasswords,
    ...options.dependencies,
  }
  const app = await createApp(dependencies)
  opened.defer(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const { addUser } = peopleOf(dependencies)
  const account = String(context.accountId)
  const admin = await addUser({ name: 'admin', account })
  const reader = await addUser({
    name: 'reader',
    account,
    roles: ['service-management-editor', 'event-portal-manager'],
  })
  const call = callerOf(app, admin.userToken)
  return {
    mesh,
    app,
    dependencies,
    url,
    enqueued,
    addUser,
    adminSession: admin.userToken,
    readerSession: reader.userToken,
    page: (path, session) => call('GET', path, { session }),
    post: (path, fields = {}, session) => call('POST', path, { session, fields }),
    [Symbol.asyncDispose]: () => opened.dispose(),
  }
}

interface Call {
  readonly session: string | null | undefined
  readonly fields?: Readonly<Record<string, string>>
}

function callerOf(app: App, ownSession: string) {
  return async (
    method: 'GET' | 'POST',
    path: string,
    { session = ownSession, fields }: Call,
  ): Promise<ConsoleAnswer> => {
    const answer = await app.inject({
      method,
      url: path,
      headers: {
        host: 'console.test',
        ...(session === null ? {} : { cookie: `keymesh_session=${session}` }),
        ...(method === 'POST'
          ? { origin: 'http://console.test', 'content-type': 'application/x-www-form-urlencoded' }
          : {}),
      },
      ...(fields === undefined ? {} : { payload: String(new URLSearchParams(fields)) }),
    })
    return { status: answer.statusCode, headers: answer.headers, html: answer.body }
  }
}
