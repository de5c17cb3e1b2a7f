import { Redis } from 'ioredis'
import type { Config } from '../config.ts'
import { errorLine } from '../domain/errors.ts'
import { type Finding, inTime, ok, problem, skipped, warning } from './finding.ts'

const TIMEOUT_MS = 5_000
/** What the queue library asks for, and what it advises. */
const OLDEST_REDIS = 5
const ADVISED_REDIS = 6.2
const POLICY = 'queue eviction'

export async function checkQueue({ redisUrl }: Pick<Config, 'redisUrl'>): Promise<readonly Finding[]> {
  if (redisUrl === null) {
    return [
      ok('queue', 'REDIS_URL is not set: the queue is in PostgreSQL.'),
      skipped(POLICY, 'It is a setting of Redis, which is not used.'),
    ]
  }
  const redis = new Redis(redisUrl, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
  let reason: unknown = null
  // What a connection meets is told by an event; the commands only say that it is closed.
  redis.on('error', (error) => {
    reason = error
  })
  try {
    await inTime(redis.connect(), TIMEOUT_MS)
    const info = fieldsOf(await inTime(redis.info(), TIMEOUT_MS))
    return [checkVersion(info), checkPolicy(info), ...checkRole(info)]
  } catch (error) {
    const fix = 'Start Redis or Valkey, or correct the address, user and password in REDIS_URL.'
    const said = errorLine(reason ?? error)
    return [
      problem('queue', `The queue's server ${placeOf(redisUrl)} does not answer as it should: ${said}`, fix),
      skipped(POLICY, 'The server of the queue does not answer.'),
    ]
  } finally {
    redis.disconnect()
  }
}

type Fields = ReadonlyMap<string, string>

const fieldsOf = (text: string): Fields =>
  new Map(
    text.split('\r\n').flatMap((line) => {
      const colon = line.indexOf(':')
      return colon < 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1)] as const]
    }),
  )

function checkVersion(info: Fields): Finding {
  const valkey = info.get('valkey_version')
  if (valkey !== undefined) return ok('queue', `Valkey ${valkey} answers.`)
  const version = info.get('redis_version') ?? '?'
  const number = Number.parseFloat(version)
  if (number < OLDEST_REDIS) {
    return problem('queue', `Redis ${version} is too old.`, `Use Redis ${ADVISED_REDIS} or newer, or Valkey.`)
  }
  if (number < ADVISED_REDIS) {
    return warning('queue', `Redis ${version} answers, and is old.`, `Use Redis ${ADVISED_REDIS} or newer, or Valkey.`)
  }
  return ok('queue', `Redis ${version} answers.`)
}

/** A server that throws keys away throws jobs away. */
function checkPolicy(info: Fields): Finding {
  const policy = info.get('maxmemory_policy')
  if (policy === undefined) return skipped(POLICY, 'The server does not say what it does when its memory is full.')
  if (policy === 'noeviction') return ok(POLICY, 'maxmemory-policy is noeviction.')
  return problem(
    POLICY,
    `maxmemory-policy is ${policy}: with a full memory the server throws jobs away.`,
    'Set maxmemory-policy to noeviction, and use a server that is no cache of others.',
  )
}

function checkRole(info: Fields): readonly Finding[] {
  const role = info.get('role')
  if (role === undefined || role === 'master') return []
  return [problem('queue role', `The server of the queue is a ${role}, which takes no writes.`, 'Name the primary.')]
}

/** Without user name and password. */
function placeOf(redisUrl: string): string {
  const { hostname, port } = new URL(redisUrl)
  return `at ${hostname}:${port || '6379'}`
}
