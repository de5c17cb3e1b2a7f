import { pino } from 'pino'
import { Disposer } from '../../src/disposer.ts'
import { type App, createApp } from '../../src/http/app.ts'
import { SESSION_COOKIE } from '../../src/http/authentication.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { addApiToken } from './api-token.ts'
import { benchDirectory, importCatalogue, openBenchContext } from './bench-context.ts'
import { type ConsoleSize, consoleCatalogue, fillRecords } from './console-fixture.ts'
import { quantile, round } from './figures.ts'

export interface ConsoleBenchOptions extends ConsoleSize {
  /** Measured requests of each page. */
  readonly requests: number
  readonly print: (line: object) => void
}

const GOAL_MS = 100
const WARM_UP_REQUESTS = 5

const PAGES: readonly (readonly [name: string, path: string])[] = [
  ['mesh', '/console'],
  ['broker', '/console/brokers/broker-00001'],
  ['registrations', '/console/registrations'],
  ['registrations-search', '/console/registrations?search=ion%20123'],
  ['registrations-not-in-sync', '/console/registrations?state=astray'],
  ['registrations-last-page', '/console/registrations?page=100'],
  ['registration', '/console/registrations/application-00001'],
  ['drift', '/console/drift'],
  ['drift-of-a-month', '/console/drift?span=30d'],
  ['drift-of-a-broker', '/console/drift?span=30d&broker=broker-00001&kind=missing'],
  ['runs', '/console/runs'],
  ['runs-not-well', '/console/runs?outcome=error'],
  ['catalogue', '/console/catalogue'],
  ['event-apis', '/console/catalogue/event-apis'],
]

/** Pages of the console over a full store, one request at a time, by server time; a JSON line for each. */
export async function benchConsole({ registrations, brokers, requests, print }: ConsoleBenchOptions): Promise<void> {
  const opened = new Disposer()
  try {
    const env = { KEYMESH_DATA_DIR: await benchDirectory(opened), KEYMESH_RATE_LIMIT: '0' }
    const context = await openBenchContext(env, opened)
    await importCatalogue(context, consoleCatalogue({ registrations, brokers }))
    await fillRecords(context.db)
    await addApiToken(context)
    const log = pino({ level: 'silent' })
    const app = await createApp({ ...context, log, random: cryptoRandom, enqueue: NOTHING_IS_ENQUEUED })
    opened.defer(() => app.close())
    const user = await context.db.selectFrom('users').select('id').where('name', '=', 'bench').executeTakeFirstOrThrow()
    const token = await context.userTokens.issue({ userId: user.id, accountId: null, generation: 1 }, 3_600_000)
    for (const [name, path] of PAGES) {
      const { milliseconds, bytes } = await measure(app, path, token, requests)
      const [median, slow] = [quantile(milliseconds, 0.5), quantile(milliseconds, 0.95)]
      print({
        case: `console-${name}-of-${registrations}-on-${brokers}`,
        ratio: round(slow / GOAL_MS),
        goal: 1,
        medianMs: round(median),
        p95Ms: round(slow),
        slowestMs: round(Math.max(...milliseconds)),
        kilobytes: round(bytes / 1000),
        requests,
      })
    }
  } finally {
    await opened.dispose()
  }
}

const taken = async () => true
const NOTHING_IS_ENQUEUED = { registration: taken, pairs: taken, sweep: taken, verify: taken, notifications: taken }

async function measure(app: App, path: string, token: string, requests: number) {
  const milliseconds: number[] = []
  let bytes = 0
  for (let index = 0; index < WARM_UP_REQUESTS + requests; index += 1) {
    const startedMs = performance.now()
    const answer = await app.inject({ url: path, headers: { cookie: `${SESSION_COOKIE}=${token}` } })
    if (index >= WARM_UP_REQUESTS) milliseconds.push(performance.now() - startedMs)
    if (answer.statusCode !== 200) throw new Error(`${path} was answered with ${answer.statusCode}: ${answer.body}`)
    bytes = answer.body.length
  }
  return { milliseconds, bytes }
}
