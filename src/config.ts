import { isIP } from 'node:net'
import { hostname } from 'node:os'
import { z } from 'zod'
import { InvalidInputError, type Problem } from './domain/errors.ts'
import type { RemoteAccess } from './domain/remote-catalogue.ts'
import { Secret } from './domain/secret.ts'
import { passwordProblem, userNameProblem } from './domain/user-names.ts'

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

/** The address of another service: what a path of its API is put behind. */
const serviceUrl = optionalText
  .refine((value) => value === null || isServiceUrl(value), {
    message: 'must be a URL that begins with http:// or https://, without user name, query and fragment',
  })
  .transform((value) => value?.replace(/\/+$/, '').replace(/\/api\/v2\/apim$/, '') ?? null)

function isServiceUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '')
}

const bearerToken = optionalText.refine((value) => value === null || /^[\x21-\x7e]+$/.test(value), {
  message: 'must be a token, without blanks and line breaks',
})

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

const optionalDuration = optionalText
  .refine((value) => value === null || /^\d{1,6}[smhd]$/.test(value), {
    message: 'must be a number and a unit, such as 90s, 15m, 24h or 7d',
  })
  .transform((value) => (value === null ? null : Number(value.slice(0, -1)) * (UNITS_MS[value.slice(-1)] ?? 0)))

const flag = (fallback: boolean) =>
  text(String(fallback))
    .pipe(z.enum(['true', 'false'], 'must be true or false'))
    .transform((value) => value === 'true')

const userName = (fallback: string) =>
  text(fallback).superRefine((value, context) => {
    const problem = userNameProblem(value)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })

/** Addresses and networks, or the names that stand for private ones. */
const proxies = text('').transform((value, context): readonly string[] => {
  const found = value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
  if (!found.every(isProxy)) {
    context.addIssue({
      code: 'custom',
      message: 'must be addresses or networks such as 10.0.0.0/8, or loopback, linklocal, uniquelocal',
    })
  }
  return found
})

function isProxy(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits, ...more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}

const cron = (fallback: string) =>
  text(fallback).refine((value) => /^(\S+\s+){4,5}\S+$/.test(value), {
    message: 'must be a cron expression of five or six fields',
  })

const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535

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
  KEYMESH_LEASE: [
    duration('30s'),
    'How long a silent worker keeps a registration on a broker to itself; much the same on all replicas.',
    '30s',
  ],
  KEYMESH_CONCURRENCY: [
    integer(64, 2, 256),
    'Registrations reconciled side by side on one broker by one process; over all brokers it does 1024.',
    '64',
  ],
  KEYMESH_POLL_CRON: [cron('*/15 * * * * *'), 'When lagging registrations are looked for.', '*/15 * * * * *'],
  KEYMESH_SWEEP_CRON: [cron('0 * * * *'), 'When every broker is fully reconciled.', '0 * * * *'],
  KEYMESH_APIM_URL: [
    serviceUrl,
    'Another service whose catalogue and registrations the account follows, over its APIM API: the address before /api/v2/apim.',
    null,
  ],
  KEYMESH_APIM_TOKEN: [bearerToken, 'API token for it; or the four settings below, which make one.', null],
  KEYMESH_AUTH_URL: [serviceUrl, 'Its identity service: the address before /api/v1/iam.', null],
  KEYMESH_AUTH_USERNAME: [optionalText, 'User there who makes the API token.', null],
  KEYMESH_AUTH_PASSWORD: [optionalText, 'Password of that user.', null],
  KEYMESH_AUTH_ACCOUNT: [optionalText, 'Account there, for a user of several.', null],
  KEYMESH_APIM_POLL_CRON: [cron('0 * * * * *'), 'When that catalogue is read again.', '0 * * * * *'],
  KEYMESH_SWEEP_LISTINGS: [
    integer(10_000, 1, 1_000_000),
    'Most listings of topic exceptions and subscriptions in one sweep of a broker, one request each; objects take turns.',
    '10000',
  ],
  PORT: [integer(8080, 0, 65_535), 'Port of the API; 0 takes any free one.', '8080'],
  KEYMESH_HOST: [text('0.0.0.0'), 'Address that the API listens on.', '0.0.0.0'],
  KEYMESH_TRUST_PROXY: [
    proxies,
    'Proxies in front, by address or network, separated by commas: what they say of the client is believed.',
    null,
  ],
  KEYMESH_RATE_LIMIT: [
    integer(6000, 0, 10_000_000),
    'Requests that one client address may send in a minute; 0 for no limit.',
    '6000',
  ],
  KEYMESH_ADMIN_USERNAME: [
    userName('admin'),
    'User name of the administrator that the first start creates when there is no user.',
    'admin',
  ],
  KEYMESH_ADMIN_PASSWORD: [
    optionalText.refine((value) => value === null || passwordProblem(value) === null, {
      message: 'must be 8 to 256 characters long',
    }),
    'Password of that administrator; without it one is made and printed once.',
    null,
  ],
  KEYMESH_USER_TOKEN_LIFETIME: [duration('1h'), 'How long a user token is good for.', '1h'],
  KEYMESH_API_TOKEN_LIFETIME: [
    optionalDuration,
    'How long an API token is good for; without it, until it is deleted.',
    null,
  ],
  KEYMESH_CREDENTIAL_NAME_OPTIONAL: [
    flag(false),
    'Whether credentials may be sent without a name; their consumer key is the name then.',
    'false',
  ],
  KEYMESH_LOGINS: [
    flag(true),
    'Whether credentials are proved by logging in to the brokers; each broker and protocol can be switched off too.',
    'true',
  ],
  KEYMESH_LOGIN_TIMEOUT: [duration('5s'), 'How long one login may take.', '5s'],
  KEYMESH_LOGIN_EVERY: [duration('24h'), 'How often each credential is proved again by a login, in sweeps.', '24h'],
  KEYMESH_LOGIN_CONTROL_EVERY: [
    duration('24h'),
    'How often a wrong password is tried on each broker and protocol, to see that it is refused.',
    '24h',
  ],
  KEYMESH_URL: [
    serviceUrl,
    'Running service that the command line asks instead of the database: the address before /api.',
    null,
  ],
  KEYMESH_TOKEN: [bearerToken, 'Token for it: an API token, or a user token of an account.', null],
  KEYMESH_ALLOW_PLAIN_HTTP: [
    flag(false),
    'Whether the command line may send that token over http:// to another host.',
    'false',
  ],
  KEYMESH_RETENTION: [
    duration('90d'),
    'How long runs, repaired drift, notifications and the audit trail are kept.',
    '90d',
  ],
  KEYMESH_EXPIRY_NOTICE: [
    duration('7d'),
    'How long before a credential expires its operators are notified; 0s for never.',
    '7d',
  ],
  KEYMESH_NOTIFICATION_RETRY: [
    duration('24h'),
    'How long a notification is tried before it becomes a dead letter.',
    '24h',
  ],
  KEYMESH_NOTIFICATION_HTTP: [flag(false), 'Whether notifications may be sent over http, not only https.', 'false'],
  KEYMESH_NOTIFICATION_NETWORKS: [
    proxies,
    'Private networks that notifications may be sent to, such as 10.1.0.0/16, separated by commas.',
    null,
  ],
  KEYMESH_METRICS: [
    text('token').pipe(z.enum(['token', 'public', 'off'], 'must be token, public or off')),
    'Who may read /metrics on PORT: holders of a token of an account, for that account (token), anybody, for all accounts (public), or nobody (off).',
    'token',
  ],
  KEYMESH_METRICS_PORT: [
    optionalText
      .refine((value) => value === null || isPort(value), { message: 'must be a whole number from 0 to 65535' })
      .transform((value) => (value === null ? null : Number(value))),
    'A port of its own for /metrics, /healthz and /readyz, for anybody who reaches it; without it they are on PORT alone, which only the role api has.',
    null,
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: [
    optionalUrl(['http:', 'https:']),
    'OpenTelemetry collector that takes traces over OTLP/HTTP, without /v1/traces; without it there are no traces.',
    null,
  ],
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: [
    optionalUrl(['http:', 'https:']),
    'The same for traces alone, the whole address.',
    null,
  ],
  OTEL_EXPORTER_OTLP_HEADERS: [optionalText, 'Headers for the collector: NAME=VALUE, separated by commas.', null],
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: [optionalText, 'The same for traces alone.', null],
  OTEL_SDK_DISABLED: [optionalText, 'true: no traces, whatever else is set.', null],
  OTEL_TRACES_EXPORTER: [optionalText, 'otlp; with any other value there are no traces.', 'otlp'],
  OTEL_SERVICE_NAME: [optionalText, 'Name of the service in traces.', 'keymesh'],
  OTEL_RESOURCE_ATTRIBUTES: [optionalText, 'More about the service in traces: NAME=VALUE, separated by commas.', null],
  OTEL_TRACES_SAMPLER: [
    text('parentbased_always_on').pipe(z.enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`)),
    'Which traces are kept; parentbased: what the caller decided holds.',
    'parentbased_always_on',
  ],
  OTEL_TRACES_SAMPLER_ARG: [
    text('1').refine((value) => Number(value) >= 0 && Number(value) <= 1, { message: 'must be a number from 0 to 1' }),
    'The share that traceidratio keeps.',
    '1',
  ],
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
  readonly sweepListings: number
  readonly remotePollCron: string
  /** Null: the account has its catalogue and registrations of its own. */
  readonly remote: RemoteConfig | null
  readonly retentionMs: number
  readonly notifications: NotificationConfig
  /** Null: nothing is proved by logging in. */
  readonly logins: LoginConfig | null
  readonly port: number
  readonly host: string
  readonly trustedProxies: readonly string[]
  /** 0: no limit. */
  readonly rateLimitPerMinute: number
  readonly administrator: { readonly name: string; readonly password: Secret | null }
  readonly userTokenLifetimeMs: number
  /** Null: until they are deleted. */
  readonly apiTokenLifetimeMs: number | null
  readonly credentialNameOptional: boolean
  readonly metrics: 'token' | 'public' | 'off'
  /** Null: none of its own. */
  readonly metricsPort: number | null
  /** Null: none are made. */
  readonly traces: TracesConfig | null
  /** Names this process in leases and log lines. */
  readonly instance: string
  /** Values that a portal file names with `passwordEnv`. */
  readonly secretFromEnvironment: (name: string) => Secret | null
}

export interface TracesConfig {
  /** Whole. */
  readonly url: string
  readonly headers: OtlpHeaders | null
  readonly resource: Readonly<Record<string, string>>
  readonly sampler: 'always_on' | 'always_off' | 'traceidratio'
  /** For `traceidratio`, 0 to 1. */
  readonly sampledShare: number
  /** What the caller of a request decided about its trace holds. */
  readonly followsParent: boolean
}

/** They carry a token, often. */
export class OtlpHeaders {
  readonly #headers: Readonly<Record<string, string>>

  constructor(headers: Readonly<Record<string, string>>) {
    this.#headers = headers
  }

  reveal(): Record<string, string> {
    return { ...this.#headers }
  }
}

export interface RemoteConfig {
  /** The address before `/api/v2/apim`. */
  readonly url: string
  readonly access: RemoteAccess
}

export interface NotificationConfig {
  /** 0: nobody is told of credentials that expire. */
  readonly expiryNoticeMs: number
  readonly retryMs: number
  readonly allowHttp: boolean
  readonly allowedNetworks: readonly string[]
}

export interface LoginConfig {
  readonly timeoutMs: number
  readonly everyMs: number
  readonly controlEveryMs: number
}

export interface Process {
  readonly env: Environment
  readonly pid: number
  readonly hostname: string
}

/** A running service that the command line asks. */
export interface ServiceAddress {
  /** The address before `/api`. */
  readonly url: string
  readonly token: Secret
  /** Values that a portal file names with `passwordEnv`. */
  readonly secretFromEnvironment: (name: string) => Secret | null
}

/** What stands in the command line instead of in the environment. */
export interface ServiceOptions {
  readonly url?: string
  readonly allowPlainHttp?: boolean
}

/**
 * Pure. Null when no service is named: the command works on the store. Throws InvalidInputError for an address that is
 * none, a missing token, and one that would travel unencrypted to another host.
 */
export function toServiceAddress({ env }: Pick<Process, 'env'>, options: ServiceOptions): ServiceAddress | null {
  const problems: Problem[] = []
  const read = <Name extends ServiceSetting>(name: Name, path: string, text: string | undefined) => {
    const result = SETTINGS[name][0].safeParse(text)
    if (!result.success) problems.push(...result.error.issues.map(({ message }) => ({ path, message })))
    return result.data as z.output<(typeof SETTINGS)[Name][0]> | undefined
  }
  const named = options.url === undefined ? 'KEYMESH_URL' : '--url'
  const url = read('KEYMESH_URL', named, options.url ?? env.KEYMESH_URL)
  if (url === null && options.url === undefined) return null
  const token = read('KEYMESH_TOKEN', 'KEYMESH_TOKEN', env.KEYMESH_TOKEN)
  const allowed = read('KEYMESH_ALLOW_PLAIN_HTTP', 'KEYMESH_ALLOW_PLAIN_HTTP', env.KEYMESH_ALLOW_PLAIN_HTTP)
  if (url === null) problems.push({ path: named, message: 'must be the address of a service' })
  if (token === null) {
    problems.push({ path: 'KEYMESH_TOKEN', message: 'must hold an API token or a user token of the service' })
  }
  if (url != null && isPlainElsewhere(url) && !(allowed === true || options.allowPlainHttp === true)) {
    const message = `the token would travel unencrypted to ${new URL(url).hostname}: use https://, or allow it by --allow-plain-http or KEYMESH_ALLOW_PLAIN_HTTP=true`
    problems.push({ path: named, message })
  }
  if (problems.length > 0 || url == null || token == null) throw new InvalidInputError('The command line', problems)
  return { url, token: new Secret(token), secretFromEnvironment: secretsOf(env) }
}

const secretsOf =
  (env: Process['env']) =>
  (name: string): Secret | null => {
    const value = env[name]
    return value === undefined || value === '' ? null : new Secret(value)
  }

type ServiceSetting = 'KEYMESH_URL' | 'KEYMESH_TOKEN' | 'KEYMESH_ALLOW_PLAIN_HTTP'

function isPlainElsewhere(url: string): boolean {
  const { protocol, hostname: host } = new URL(url)
  return protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)
}

/** Whether NO_COLOR asks for text without colour: it is there, and not empty. */
export const asksForNoColour = ({ env }: Pick<Process, 'env'>): boolean => (env.NO_COLOR ?? '') !== ''

/** The only reader of `process.env`. */
export function readEnv(): Process {
  return { env: { ...process.env }, pid: process.pid, hostname: hostname() }
}

/** Pure. Validates the whole environment and names every problem at once; an unknown `KEYMESH_` name is one. */
export function toConfig(process: Process): Config {
  const { config, problems } = readConfig(process)
  if (problems.length > 0) throw new InvalidInputError('The environment', problems)
  return config
}

/** Pure. With the problems of the settings; what is wrong has its default then, so that all the rest can be looked at. */
export function toUsableConfig({ env, ...rest }: Process): {
  readonly config: Config
  readonly problems: readonly Problem[]
} {
  const { problems } = readConfig({ env, ...rest })
  const wrong = new Set(problems.map(({ path }) => path))
  const right = Object.fromEntries(Object.entries(env).filter(([name]) => !wrong.has(name)))
  return { config: readConfig({ env: right, ...rest }).config, problems }
}

function readConfig({ env, pid, hostname: host }: Process): {
  readonly config: Config
  readonly problems: readonly Problem[]
} {
  const problems: Problem[] = []
  const read = <Name extends keyof typeof SETTINGS>(name: Name): z.output<(typeof SETTINGS)[Name][0]> => {
    const result = SETTINGS[name][0].safeParse(env[name])
    if (!result.success) problems.push(...result.error.issues.map(({ message }) => ({ path: name, message })))
    return result.data as z.output<(typeof SETTINGS)[Name][0]>
  }
  const keys = read('KEYMESH_KEYS')
  const administratorPassword = read('KEYMESH_ADMIN_PASSWORD')
  const loginConfig: LoginConfig = {
    timeoutMs: read('KEYMESH_LOGIN_TIMEOUT'),
    everyMs: read('KEYMESH_LOGIN_EVERY'),
    controlEveryMs: read('KEYMESH_LOGIN_CONTROL_EVERY'),
  }
  const logins = read('KEYMESH_LOGINS') ? loginConfig : null
  const remote = toRemote(
    {
      url: read('KEYMESH_APIM_URL'),
      token: read('KEYMESH_APIM_TOKEN'),
      authUrl: read('KEYMESH_AUTH_URL'),
      username: read('KEYMESH_AUTH_USERNAME'),
      password: read('KEYMESH_AUTH_PASSWORD'),
      account: read('KEYMESH_AUTH_ACCOUNT'),
    },
    problems,
  )
  const traces = toTraces({
    endpoint: read('OTEL_EXPORTER_OTLP_ENDPOINT'),
    tracesEndpoint: read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'),
    headers: read('OTEL_EXPORTER_OTLP_TRACES_HEADERS') ?? read('OTEL_EXPORTER_OTLP_HEADERS'),
    isOff: /^true$/i.test(read('OTEL_SDK_DISABLED') ?? '') || (read('OTEL_TRACES_EXPORTER') ?? 'otlp') !== 'otlp',
    serviceName: read('OTEL_SERVICE_NAME'),
    resourceAttributes: read('OTEL_RESOURCE_ATTRIBUTES'),
    sampler: read('OTEL_TRACES_SAMPLER'),
    sampledShare: Number(read('OTEL_TRACES_SAMPLER_ARG')),
    instance: `${host}-${pid}`,
  })
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
    sweepListings: read('KEYMESH_SWEEP_LISTINGS'),
    remotePollCron: read('KEYMESH_APIM_POLL_CRON'),
    remote,
    retentionMs: read('KEYMESH_RETENTION'),
    notifications: {
      expiryNoticeMs: read('KEYMESH_EXPIRY_NOTICE'),
      retryMs: read('KEYMESH_NOTIFICATION_RETRY'),
      allowHttp: read('KEYMESH_NOTIFICATION_HTTP'),
      allowedNetworks: read('KEYMESH_NOTIFICATION_NETWORKS'),
    },
    logins,
    port: read('PORT'),
    host: read('KEYMESH_HOST'),
    trustedProxies: read('KEYMESH_TRUST_PROXY'),
    rateLimitPerMinute: read('KEYMESH_RATE_LIMIT'),
    administrator: {
      name: read('KEYMESH_ADMIN_USERNAME'),
      password: administratorPassword == null ? null : new Secret(administratorPassword),
    },
    userTokenLifetimeMs: read('KEYMESH_USER_TOKEN_LIFETIME'),
    apiTokenLifetimeMs: read('KEYMESH_API_TOKEN_LIFETIME'),
    credentialNameOptional: read('KEYMESH_CREDENTIAL_NAME_OPTIONAL'),
    metrics: read('KEYMESH_METRICS'),
    metricsPort: read('KEYMESH_METRICS_PORT'),
    traces,
    instance: `${host}-${pid}`,
    secretFromEnvironment: secretsOf(env),
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
  return { config, problems }
}

interface RemoteSettings {
  readonly url: string | null | undefined
  readonly token: string | null | undefined
  readonly authUrl: string | null | undefined
  readonly username: string | null | undefined
  readonly password: string | null | undefined
  readonly account: string | null | undefined
}

/** A token, or a sign-in that makes one; neither without the service that they are for. */
function toRemote(given: RemoteSettings, problems: Problem[]): RemoteConfig | null {
  const { url, token, authUrl, username, password, account } = given
  const signIn = { KEYMESH_AUTH_URL: authUrl, KEYMESH_AUTH_USERNAME: username, KEYMESH_AUTH_PASSWORD: password }
  const names = { KEYMESH_APIM_TOKEN: token, ...signIn, KEYMESH_AUTH_ACCOUNT: account }
  const complain = (path: string, message: string): void => void problems.push({ path, message })
  const set = Object.entries(names).flatMap(([name, value]) => (value == null ? [] : [name]))
  // What could not be read is a problem already.
  if (url === undefined || authUrl === undefined || token === undefined) return null
  if (url === null) {
    for (const name of set) complain(name, 'has no use without KEYMESH_APIM_URL')
    return null
  }
  if (token != null) {
    for (const name of set.slice(1)) complain(name, 'stands beside KEYMESH_APIM_TOKEN; give one of them')
    return { url, access: { kind: 'token', token: new Secret(token) } }
  }
  if (authUrl !== null && username != null && password != null) {
    const access = { kind: 'sign-in', url: authUrl, username, password: new Secret(password) } as const
    return { url, access: { ...access, account: account ?? null } }
  }
  if (set.length === 0)
    complain('KEYMESH_APIM_TOKEN', 'must be given with KEYMESH_APIM_URL, or KEYMESH_AUTH_URL and a user')
  for (const [name, value] of Object.entries(signIn)) {
    if (set.length > 0 && value == null) complain(name, 'must be given with the other settings of the sign-in')
  }
  return null
}

interface TraceSettings {
  readonly endpoint: string | null | undefined
  readonly tracesEndpoint: string | null | undefined
  readonly headers: string | null | undefined
  readonly isOff: boolean
  readonly serviceName: string | null | undefined
  readonly resourceAttributes: string | null | undefined
  readonly sampler: (typeof SAMPLERS)[number] | undefined
  readonly sampledShare: number
  readonly instance: string
}

/** As the OpenTelemetry specification reads the variables: the one for traces alone is taken as it is. */
function toTraces(given: TraceSettings): TracesConfig | null {
  const { endpoint, tracesEndpoint, sampler = 'parentbased_always_on' } = given
  const url = tracesEndpoint ?? (endpoint == null ? null : `${endpoint.replace(/\/+$/, '')}/v1/traces`)
  if (url === null || given.isOff) return null
  const followsParent = sampler.startsWith('parentbased_')
  return {
    url,
    headers: given.headers == null ? null : new OtlpHeaders(keyValues(given.headers)),
    resource: {
      'service.name': 'keymesh',
      'service.instance.id': given.instance,
      ...keyValues(given.resourceAttributes ?? ''),
      ...(given.serviceName != null && { 'service.name': given.serviceName }),
    },
    sampler: sampler.replace('parentbased_', '') as TracesConfig['sampler'],
    sampledShare: given.sampledShare,
    followsParent,
  }
}

/** `a=1,b=2%2C3`; what is not of this form is left out. */
function keyValues(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').flatMap((part) => {
    const [, key, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(part) ?? []
    return key === undefined || value === undefined ? [] : [[key, decoded(value)] as const]
  })
  return Object.fromEntries(pairs)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
