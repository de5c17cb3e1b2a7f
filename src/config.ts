import { hostname } from 'node:os'
import { z } from 'zod'
import { InvalidInputError, type Problem } from './domain/errors.ts'
import { Secret } from './domain/secret.ts'

/** Every setting of the service: name, what it means, how it is read. The documents' table is checked against it. */
export interface Setting {
  readonly name: string
  readonly description: string
  readonly default: string | null
  readonly schema: z.ZodType<unknown, string | undefined>
}

const ROLES = ['api', 'worker', 'scheduler'] as const
export type Role = (typeof ROLES)[number]

const text = (fallback: string) =>
  z
    .string()
    .optional()
    .transform((value) => (value === undefined || value === '' ? fallback : value))

const optionalText = z
  .string()
  .optional()
  .transform((value) => (value === undefined || value === '' ? null : value))

const optionalUrl = (protocols: readonly string[]) =>
  optionalText.refine(
    (value) => value === null || (URL.canParse(value) && protocols.includes(new URL(value).protocol)),
    { message: `must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}` },
  )

const integer = (fallback: number, min: number, max: number) =>
  z
    .string()
    .optional()
    .transform((value) => (value === undefined || value === '' ? fallback : Number(value)))
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, {
      message: `must be a whole number from ${min} to ${max}`,
    })

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `15m`, `24h`, `7d` to milliseconds. */
const duration = (fallback: string) =>
  text(fallback)
    .refine((value) => /^\d{1,6}[smhd]$/.test(value), {
      message: 'must be a number and a unit, such as 90s, 15m, 24h or 7d',
    })
    .transform((value) => Number(value.slice(0, -1)) * (UNITS_MS[value.slice(-1)] ?? 0))

const cron = (fallback: string) =>
  text(fallback).refine((value) => /^(\S+\s+){4,5}\S+$/.test(value), {
    message: 'must be a cron expression of five or six fields',
  })

const SETTINGS = {
  KEYMESH_DATA_DIR: [text('./data'), 'Directory of the embedded database and its key ring.', './data'],
  DATABASE_URL: [
    optionalUrl(['postgres:', 'postgresql:']),
    'PostgreSQL to use instead of the embedded one; KEYMESH_KEYS must then be given.',
    null,
  ],
  REDIS_URL: [
    optionalUrl(['redis:', 'rediss:']),
    'Redis or Valkey for the queue; without it the queue is in PostgreSQL.',
    null,
  ],
  KEYMESH_KEYS: [optionalText, 'Key ring that seals secrets, as `keymesh keys --help` describes it.', null],
  KEYMESH_ACCOUNT: [text('default'), 'Account that the command line works on.', 'default'],
  KEYMESH_ROLES: [
    text(ROLES.join(',')).transform((value, context) => {
      const roles = value.split(',').map((role) => role.trim())
      const unknown = roles.filter((role) => !ROLES.some((known) => known === role))
      if (unknown.length > 0) {
        context.addIssue({ code: 'custom', message: `knows the roles ${ROLES.join(', ')}, not ${unknown.join(', ')}` })
      }
      return ROLES.filter((role) => roles.includes(role))
    }),
    'Roles of this process, separated by commas.',
    ROLES.join(','),
  ],
  KEYMESH_LOG_LEVEL: [
    text('info').pipe(z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])),
    'Least severe log line that is written: trace, debug, info, warn, error or silent.',
    'info',
  ],
  KEYMESH_DATABASE_CONNECTIONS: [
    integer(20, 2, 500),
    'Most connections to PostgreSQL, without those of the queue.',
    '20',
  ],
  KEYMESH_GRACE_PERIOD: [
    duration('24h'),
    'How long withdrawn objects stay on a broker, disabled, before they are deleted.',
    '24h',
  ],
  KEYMESH_MAX_TOPICS: [integer(1000, 1, 100_000), 'Most topics of a registration in one direction.', '1000'],
  KEYMESH_MAX_DELETES: [integer(200, 1, 100_000), 'Most objects that one plan may delete without being asked.', '200'],
  KEYMESH_LEASE: [duration('30s'), 'How long a silent worker keeps a registration on a broker to itself.', '30s'],
  KEYMESH_CONCURRENCY: [integer(32, 2, 256), 'Registrations reconciled side by side on one broker.', '32'],
  KEYMESH_POLL_CRON: [cron('*/15 * * * * *'), 'When lagging registrations are looked for.', '*/15 * * * * *'],
  KEYMESH_SWEEP_CRON: [cron('0 * * * *'), 'When every broker is fully reconciled.', '0 * * * *'],
  KEYMESH_RETENTION: [duration('90d'), 'How long runs and repaired drift are kept.', '90d'],
} as const satisfies Record<string, readonly [z.ZodType<unknown, string | undefined>, string, string | null]>

export const settings: readonly Setting[] = Object.entries(SETTINGS).map(([name, [schema, description, fallback]]) => ({
  name,
  description,
  default: fallback,
  schema,
}))

export type Environment = Readonly<Record<string, string | undefined>>

export interface Config {
  readonly dataDirectory: string
  readonly databaseUrl: string | null
  readonly redisUrl: string | null
  readonly keys: Secret | null
  readonly account: string
  readonly roles: readonly Role[]
  readonly logLevel: string
  readonly databaseConnections: number
  readonly graceMs: number
  readonly maxTopics: number
  readonly maxDeletes: number
  readonly leaseMs: number
  readonly concurrency: number
  readonly pollCron: string
  readonly sweepCron: string
  readonly retentionMs: number
  /** Names this process in leases and log lines. */
  readonly instance: string
  /** Values that a portal file names with `passwordEnv`. */
  readonly secretFromEnvironment: (name: string) => Secret | null
}

export interface Process {
  readonly env: Environment
  readonly pid: number
  readonly hostname: string
}

/** The only reader of `process.env`. */
export function readEnv(): Process {
  return { env: { ...process.env }, pid: process.pid, hostname: hostname() }
}

/** Pure. Validates the whole environment and names every problem at once; an unknown `KEYMESH_` name is one. */
export function toConfig({ env, pid, hostname: host }: Process): Config {
  const problems: Problem[] = []
  const read = <Name extends keyof typeof SETTINGS>(name: Name): z.output<(typeof SETTINGS)[Name][0]> => {
    const result = SETTINGS[name][0].safeParse(env[name])
    if (!result.success) problems.push(...result.error.issues.map(({ message }) => ({ path: name, message })))
    return result.data as z.output<(typeof SETTINGS)[Name][0]>
  }
  const keys = read('KEYMESH_KEYS')
  const config: Config = {
    dataDirectory: read('KEYMESH_DATA_DIR'),
    databaseUrl: read('DATABASE_URL'),
    redisUrl: read('REDIS_URL'),
    keys: keys == null ? null : new Secret(keys),
    account: read('KEYMESH_ACCOUNT'),
    roles: read('KEYMESH_ROLES'),
    logLevel: read('KEYMESH_LOG_LEVEL'),
    databaseConnections: read('KEYMESH_DATABASE_CONNECTIONS'),
    graceMs: read('KEYMESH_GRACE_PERIOD'),
    maxTopics: read('KEYMESH_MAX_TOPICS'),
    maxDeletes: read('KEYMESH_MAX_DELETES'),
    leaseMs: read('KEYMESH_LEASE'),
    concurrency: read('KEYMESH_CONCURRENCY'),
    pollCron: read('KEYMESH_POLL_CRON'),
    sweepCron: read('KEYMESH_SWEEP_CRON'),
    retentionMs: read('KEYMESH_RETENTION'),
    instance: `${host}-${pid}`,
    secretFromEnvironment: (name) => {
      const value = env[name]
      return value === undefined || value === '' ? null : new Secret(value)
    },
  }
  if (config.databaseUrl !== null && config.keys === null) {
    problems.push({
      path: 'KEYMESH_KEYS',
      message: 'must be given with DATABASE_URL, the same for all replicas (`keymesh keys generate` makes one)',
    })
  }
  const known = new Set<string>(Object.keys(SETTINGS))
  for (const name of Object.keys(env)) {
    if (!name.startsWith('KEYMESH_') || known.has(name) || /^KEYMESH_(DEMO|TEST)_/.test(name)) continue
    problems.push({ path: name, message: 'is not a setting of Keymesh; is it misspelt?' })
  }
  if (problems.length > 0) throw new InvalidInputError('The environment', problems)
  return config
}
