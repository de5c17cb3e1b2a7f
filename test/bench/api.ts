import { execFile } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import fastify, { type FastifyInstance } from 'fastify'
import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { pino } from 'pino'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import { createApp } from '../../src/http/app.ts'
import type { HttpDependencies } from '../../src/http/dependencies.ts'
import { paginate } from '../../src/http/pagination.ts'
import { startServer } from '../../src/http/server.ts'
import { type OpenDatabase, openDatabase } from '../../src/store/database.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import type { Schema } from '../../src/store/schema.ts'
import { apiCatalogue } from './api-fixture.ts'
import { addApiToken } from './api-token.ts'
import { benchDirectory } from './bench-context.ts'
import { median, round } from './figures.ts'
import type { LoadResult } from './load.ts'

export interface ApiBenchOptions {
  readonly products: number
  readonly connections: number
  readonly seconds: number
  readonly rounds: number
  readonly print: (line: object) => void
}

const GOAL = 0.7
const DATABASE_CONNECTIONS = 10
const PAGE = { pageNumber: 1, pageSize: 20 }
const LIST = '/api/v2/apim/eventApiProducts'

interface Case {
  readonly name: string
  readonly path: string
  /** The body, made of the last row that the SQL of the call gives. */
  readonly body: (row: Row) => string
}
type Row = Readonly<Record<string, unknown>>

const CASES: readonly Case[] = [
  {
    name: 'list-20',
    path: LIST,
    body: ({ items, count }) => `{"data":[${items}],"meta":${JSON.stringify(paginate(PAGE, [], Number(count)).meta)}}`,
  },
  {
    name: 'single',
    path: `${LIST}/product000500`,
    body: ({ document }) => `{"data":${document},"meta":{}}`,
  },
]

/** Reads of the catalogue, against a bare handler that runs the same SQL and sends the same bytes; a JSON line each. */
export async function benchApi({ products, connections, seconds, rounds, print }: ApiBenchOptions): Promise<void> {
  const opened = new Disposer()
  try {
    const { context, database, token } = await openCatalogue(products, opened)
    const dependencies = dependenciesOf(context, database)
    const server = await startServer(dependencies, { host: '127.0.0.1', port: 0 })
    opened.defer(() => server.close())
    for (const each of CASES) {
      const queries = await recordQueries(dependencies, database.pool, each.path, token)
      const bare = await startBare(database.pool, queries, each)
      const bareLast = await startBare(database.pool, queries.slice(-1), each)
      const origins = { api: server.url, bare: bare.url, oneQuery: bareLast.url }
      try {
        await assertSameBytes(Object.values(origins), each.path, token)
        const load = { path: each.path, token, connections, seconds }
        const results = await measure(origins, load, rounds)
        print({ case: `${each.name}-of-${products}`, ...summary(results), queries: queries.length, connections })
      } finally {
        await bare.app.close()
        await bareLast.app.close()
      }
    }
  } finally {
    await opened.dispose()
  }
}

async function openCatalogue(products: number, opened: Disposer) {
  const directory = await benchDirectory(opened)
  const env = { KEYMESH_DATA_DIR: join(directory, 'data'), KEYMESH_LOG_LEVEL: 'error', KEYMESH_RATE_LIMIT: '0' }
  const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'bench' }))
  opened.defer(() => context[Symbol.asyncDispose]())
  const { db, sealer, now, accountId } = context
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, apiCatalogue(products))
  const { connectionString } = context
  const database = openDatabase({
    connectionString,
    maxConnections: DATABASE_CONNECTIONS,
    onIdleError: () => undefined,
  })
  opened.defer(database.close)
  // As autovacuum leaves it.
  await database.pool.query('vacuum analyze')
  return { context, database, token: await addApiToken(context) }
}

/** As in service, its log lines written but kept nowhere. */
function dependenciesOf(context: Context, { db }: OpenDatabase): HttpDependencies {
  const { sealer, now, config, engine, passwords, userTokens } = context
  const log = pino({ level: 'info' }, pino.destination({ dest: '/dev/null', sync: true }))
  const nothing = () => Promise.resolve(true)
  const enqueue = { registration: nothing, pairs: nothing, sweep: nothing, verify: nothing, notifications: nothing }
  return { db, sealer, now, log, config, enqueue, random: cryptoRandom, engine, passwords, userTokens }
}

interface Query {
  readonly text: string
  readonly values: readonly unknown[]
}

/** What one call asks the database, authentication included. */
async function recordQueries(
  dependencies: HttpDependencies,
  pool: pg.Pool,
  path: string,
  token: string,
): Promise<readonly Query[]> {
  const queries: Query[] = []
  const db = new Kysely<Schema>({
    dialect: new PostgresDialect({ pool }),
    log: ({ query }) => {
      queries.push({ text: query.sql, values: query.parameters })
    },
  })
  const app = await createApp({ ...dependencies, db })
  const { statusCode, body } = await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } })
  await app.close()
  if (statusCode !== 200) throw new Error(`${path} was answered with ${statusCode}: ${body}`)
  return queries
}

async function startBare(
  pool: pg.Pool,
  queries: readonly Query[],
  { path, body }: Case,
): Promise<{ readonly app: FastifyInstance; readonly url: string }> {
  const app = fastify()
  app.get(path, async (_request, reply) => {
    let row: Row = {}
    for (const { text, values } of queries) row = (await pool.query<Row>({ text, values: [...values] })).rows[0] ?? {}
    return reply.type('application/json; charset=utf-8').send(body(row))
  })
  return { app, url: await app.listen({ host: '127.0.0.1', port: 0 }) }
}

async function assertSameBytes(origins: readonly string[], path: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` }
  const bodies = await Promise.all(origins.map(async (origin) => (await fetch(`${origin}${path}`, { headers })).text()))
  if (new Set(bodies).size !== 1) throw new Error(`${path} is not answered with the same bytes`)
}

interface Load {
  readonly path: string
  readonly token: string
  readonly connections: number
  readonly seconds: number
}

type Results<Name extends string> = Readonly<Record<Name, readonly LoadResult[]>>

const WARM_UP_ROUNDS = 2

/** In turn and back, so that a slow moment of the machine meets all; the first rounds only warm up. */
async function measure<Name extends string>(
  origins: Readonly<Record<Name, string>>,
  load: Load,
  rounds: number,
): Promise<Results<Name>> {
  const names = Object.keys(origins) as Name[]
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, LoadResult[]>
  for (let round = 0; round < WARM_UP_ROUNDS + rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await runLoad(origins[name], load)
      if (result.failed > 0) throw new Error(`${result.failed} requests to ${name} failed`)
      if (round >= WARM_UP_ROUNDS) results[name].push(result)
    }
  }
  return results
}

async function runLoad(origin: string, { path, token, connections, seconds }: Load): Promise<LoadResult> {
  const program = fileURLToPath(new URL(`./load${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program], {
    env: {
      PATH: process.env.PATH,
      BENCH_ORIGIN: origin,
      BENCH_PATH: path,
      BENCH_TOKEN: token,
      BENCH_CONNECTIONS: String(connections),
      BENCH_SECONDS: String(seconds),
    },
  })
  return JSON.parse(stdout) as LoadResult
}

/** Ratios are of neighbouring measurements, the median of all rounds. */
function summary(results: Results<'api' | 'bare' | 'oneQuery'>) {
  const ratioTo = (other: 'bare' | 'oneQuery') =>
    round(
      median(
        results.api.map(
          (each, index) => each.requestsPerSecond / (results[other][index]?.requestsPerSecond ?? Number.NaN),
        ),
      ),
    )
  const figures = (name: keyof typeof results) => ({
    requestsPerSecond: round(median(results[name].map((each) => each.requestsPerSecond))),
    p50Ms: round(median(results[name].map((each) => each.p50Ms))),
    p99Ms: round(median(results[name].map((each) => each.p99Ms))),
  })
  return {
    ratio: ratioTo('bare'),
    goal: GOAL,
    ...figures('api'),
    bare: figures('bare'),
    /** Without the query that finds the token. */
    ratioToBareWithoutAuthentication: ratioTo('oneQuery'),
  }
}
