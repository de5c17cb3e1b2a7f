import { readFile } from 'node:fs/promises'
import process from 'node:process'
import { Pool } from 'undici'
import { exchange } from '../../src/brokers/solace/http-exchange.ts'
import type { RecordedRequest } from './child.ts'

/**
 * What an executor does that goes object by object, each topic exception and each subscription being one as well: it reads
 * the object, creates it when the broker says that it is absent, and changes it when an attribute differs. What an object
 * hangs on comes before it. Told by the environment: BENCH_SCRIPT is a file of recorded requests, whose creations are the
 * desired state; BENCH_URL, BENCH_LOGIN, BENCH_CONCURRENCY, and BENCH_PER_SECOND, 0 for no limit. Prints one JSON line.
 */
export interface BaselineChildResult {
  readonly seconds: number
  readonly objects: number
  readonly created: number
  readonly changed: number
  readonly failed: number
}

interface DesiredObject {
  readonly collectionPath: string
  readonly objectPath: string
  readonly level: number
  readonly attributes: Readonly<Record<string, unknown>>
}

/** Collections in the order in which they are applied, with the attributes that name an object of theirs. */
const COLLECTIONS: readonly (readonly [name: string, ...keys: readonly string[]])[] = [
  ['clientProfiles', 'clientProfileName'],
  ['aclProfiles', 'aclProfileName'],
  ['publishTopicExceptions', 'publishTopicExceptionSyntax', 'publishTopicException'],
  ['subscribeTopicExceptions', 'subscribeTopicExceptionSyntax', 'subscribeTopicException'],
  ['clientUsernames', 'clientUsername'],
  ['queues', 'queueName'],
  ['subscriptions', 'subscriptionTopic'],
]
/** The broker never tells it. */
const PASSWORD = 'password'
const NOT_FOUND = 6

const {
  BENCH_SCRIPT = '',
  BENCH_URL = '',
  BENCH_LOGIN = '',
  BENCH_CONCURRENCY = '',
  BENCH_PER_SECOND = '',
} = process.env
const concurrency = Number(BENCH_CONCURRENCY)
const intervalMs = Number(BENCH_PER_SECOND) === 0 ? 0 : 1000 / Number(BENCH_PER_SECOND)
const pool = new Pool(BENCH_URL, { connections: concurrency, pipelining: 1 })
const limits = { timeoutMs: 60_000, timedOut: new Error('no answer') }
const counts = { created: 0, changed: 0, failed: 0 }
let headers: Readonly<Record<string, string>> = {}
let nextStartMs = 0

const objects = desiredObjects(JSON.parse(await readFile(BENCH_SCRIPT, 'utf8')) as readonly RecordedRequest[])
await login()
const startedMs = performance.now()
for (const level of COLLECTIONS.keys()) await applyAll(objects.filter((object) => object.level === level))
const seconds = (performance.now() - startedMs) / 1000
await pool.close()
const result: BaselineChildResult = { seconds, objects: objects.length, ...counts }
process.stdout.write(`${JSON.stringify(result)}\n`)

function desiredObjects(requests: readonly RecordedRequest[]): readonly DesiredObject[] {
  const found = new Map<string, DesiredObject>()
  for (const { method, path: collectionPath, body } of requests) {
    if (method !== 'POST' || body === null) continue
    const name = collectionPath.split('/').at(-1)
    const level = COLLECTIONS.findIndex(([collection]) => collection === name)
    const [, ...keys] = COLLECTIONS[level] ?? [undefined]
    if (keys.length === 0) throw new Error(`nobody knows what names an object of ${collectionPath}`)
    const attributes = JSON.parse(body) as Readonly<Record<string, unknown>>
    const key = keys.map((each) => encodeURIComponent(String(attributes[each]))).join(',')
    const objectPath = `${collectionPath}/${key}`
    found.set(objectPath, { collectionPath, objectPath, level, attributes })
  }
  return [...found.values()]
}

async function login(): Promise<void> {
  const authorization = `Basic ${Buffer.from(BENCH_LOGIN).toString('base64')}`
  const path = '/SEMP/v2/config/about/api'
  const { setCookie } = await exchange(pool, { method: 'GET', path, headers: { authorization } }, limits)
  const cookie = setCookie.map((each) => each.split(';')[0] ?? '').join('; ')
  headers = { cookie, 'content-type': 'application/json' }
}

async function applyAll(desired: readonly DesiredObject[]): Promise<void> {
  let next = 0
  const loop = async (): Promise<void> => {
    for (;;) {
      const object = desired[next++]
      if (object === undefined) return
      await applyOne(object)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, loop))
}

async function applyOne({ collectionPath, objectPath, attributes }: DesiredObject): Promise<void> {
  const { status, data, code } = await send('GET', objectPath)
  if (code === NOT_FOUND) {
    counts.created += 1
    return counted(await send('POST', collectionPath, attributes))
  }
  if (status !== 200) return counted({ status })
  const isSame = ([name, value]: readonly [string, unknown]): boolean => name === PASSWORD || data?.[name] === value
  if (Object.entries(attributes).every(isSame)) return
  counts.changed += 1
  counted(await send('PATCH', objectPath, attributes))
}

function counted({ status }: { readonly status: number }): void {
  if (status !== 200) counts.failed += 1
}

async function send(method: 'GET' | 'POST' | 'PATCH', path: string, attributes?: object) {
  await turn()
  const body = attributes === undefined ? undefined : JSON.stringify(attributes)
  const answer = await exchange(pool, { method, path, headers, body }, limits)
  const { data, meta } = JSON.parse(answer.body.toString('utf8')) as {
    readonly data?: Readonly<Record<string, unknown>>
    readonly meta?: { readonly error?: { readonly code: number } }
  }
  return { status: answer.status, data, code: meta?.error?.code }
}

/** Requests begin at an even pace. */
async function turn(): Promise<void> {
  if (intervalMs === 0) return
  const nowMs = performance.now()
  const startMs = Math.max(nowMs, nextStartMs)
  nextStartMs = startMs + intervalMs
  await new Promise((resolve) => setTimeout(resolve, startMs - nowMs))
}
