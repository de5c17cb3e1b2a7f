import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type Environment, readEnv, settings, toConfig } from '../../src/config.ts'
import { InvalidInputError } from '../../src/domain/errors.ts'

const configOf = (env: Environment) => toConfig({ env, pid: 42, hostname: 'node-1' })

function problemsOf(env: Environment): readonly string[] {
  try {
    configOf(env)
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error
    return error.problems.map(({ path, message }) => `${path} ${message}`)
  }
  throw new Error('the environment was accepted')
}

describe('a configuration', () => {
  it('has a default for everything', () => {
    const { secretFromEnvironment, ...values } = configOf({})
    expect(values).toEqual({
      dataDirectory: './data',
      databaseUrl: null,
      redisUrl: null,
      keys: null,
      account: 'default',
      roles: ['api', 'worker', 'scheduler'],
      logLevel: 'info',
      logins: { timeoutMs: 5_000, everyMs: 86_400_000, controlEveryMs: 86_400_000 },
      databaseConnections: 20,
      graceMs: 86_400_000,
      maxTopics: 1000,
      maxDeletes: 200,
      leaseMs: 30_000,
      concurrency: 64,
      pollCron: '*/15 * * * * *',
      sweepCron: '0 * * * *',
      sweepListings: 10_000,
      remotePollCron: '0 * * * * *',
      remote: null,
      retentionMs: 7_776_000_000,
      port: 8080,
      host: '0.0.0.0',
      trustedProxies: [],
      rateLimitPerMinute: 6000,
      administrator: { name: 'admin', password: null },
      userTokenLifetimeMs: 3_600_000,
      apiTokenLifetimeMs: null,
      credentialNameOptional: false,
      metrics: 'token',
      metricsPort: null,
      notifications: { expiryNoticeMs: 604_800_000, retryMs: 86_400_000, allowHttp: false, allowedNetworks: [] },
      traces: null,
      instance: 'node-1-42',
    })
    expect(secretFromEnvironment('ANYTHING')).toBeNull()
  })

  it('takes an empty value for an absent one', () => {
    const empty = Object.fromEntries(settings.map(({ name }) => [name, '']))
    const [one, other] = [configOf(empty), configOf({})].map((config) => ({ ...config, secretFromEnvironment: null }))
    expect(one).toEqual(other)
  })

  it('reads every setting', () => {
    const config = configOf({
      KEYMESH_DATA_DIR: '/var/lib/keymesh',
      DATABASE_URL: 'postgres://keymesh@db:5432/keymesh',
      REDIS_URL: 'rediss://cache:6380',
      KEYMESH_KEYS: 'the-ring',
      KEYMESH_ACCOUNT: 'north',
      KEYMESH_ROLES: 'scheduler, worker',
      KEYMESH_LOG_LEVEL: 'debug',
      KEYMESH_DATABASE_CONNECTIONS: '5',
      KEYMESH_GRACE_PERIOD: '7d',
      KEYMESH_MAX_TOPICS: '10',
      KEYMESH_MAX_DELETES: '20',
      KEYMESH_LEASE: '90s',
      KEYMESH_CONCURRENCY: '2',
      KEYMESH_POLL_CRON: '* * * * *',
      KEYMESH_SWEEP_CRON: '30 2 * * *',
      KEYMESH_RETENTION: '15m',
      PORT: '0',
      KEYMESH_HOST: '127.0.0.1',
      KEYMESH_TRUST_PROXY: 'loopback, 10.0.0.0/8,fd00::1',
      KEYMESH_RATE_LIMIT: '0',
      KEYMESH_ADMIN_USERNAME: 'root@example.com',
      KEYMESH_ADMIN_PASSWORD: 'a-password',
      KEYMESH_USER_TOKEN_LIFETIME: '5m',
      KEYMESH_API_TOKEN_LIFETIME: '30d',
      KEYMESH_CREDENTIAL_NAME_OPTIONAL: 'true',
    })
    expect(config).toMatchObject({
      dataDirectory: '/var/lib/keymesh',
      databaseUrl: 'postgres://keymesh@db:5432/keymesh',
      redisUrl: 'rediss://cache:6380',
      account: 'north',
      roles: ['worker', 'scheduler'],
      logLevel: 'debug',
      databaseConnections: 5,
      graceMs: 604_800_000,
      maxTopics: 10,
      maxDeletes: 20,
      leaseMs: 90_000,
      concurrency: 2,
      pollCron: '* * * * *',
      sweepCron: '30 2 * * *',
      retentionMs: 900_000,
      port: 0,
      host: '127.0.0.1',
      trustedProxies: ['loopback', '10.0.0.0/8', 'fd00::1'],
      rateLimitPerMinute: 0,
      userTokenLifetimeMs: 300_000,
      apiTokenLifetimeMs: 2_592_000_000,
      credentialNameOptional: true,
    })
    expect(config.administrator.name).toBe('root@example.com')
    expect(config.administrator.password?.reveal()).toBe('a-password')
    expect(config.keys?.reveal()).toBe('the-ring')
  })

  it.each<readonly [sentence: string, env: Environment, problem: string]>([
    [
      'a number that is none',
      { KEYMESH_MAX_TOPICS: 'many' },
      'KEYMESH_MAX_TOPICS must be a whole number from 1 to 100000',
    ],
    ['a fraction', { KEYMESH_MAX_TOPICS: '1.5' }, 'KEYMESH_MAX_TOPICS must be a whole number from 1 to 100000'],
    [
      'a number below its bound',
      { KEYMESH_MAX_TOPICS: '0' },
      'KEYMESH_MAX_TOPICS must be a whole number from 1 to 100000',
    ],
    [
      'a number above its bound',
      { KEYMESH_DATABASE_CONNECTIONS: '501' },
      'KEYMESH_DATABASE_CONNECTIONS must be a whole number from 2 to 500',
    ],
    [
      'a duration without a unit',
      { KEYMESH_LEASE: '30' },
      'KEYMESH_LEASE must be a number and a unit, such as 90s, 15m, 24h or 7d',
    ],
    [
      'a duration with an unknown unit',
      { KEYMESH_RETENTION: '2w' },
      'KEYMESH_RETENTION must be a number and a unit, such as 90s, 15m, 24h or 7d',
    ],
    [
      'an address of another kind',
      { REDIS_URL: 'http://cache' },
      'REDIS_URL must be a URL that begins with redis:// or rediss://',
    ],
    [
      'an address that is none',
      { DATABASE_URL: 'db', KEYMESH_KEYS: 'the-ring' },
      'DATABASE_URL must be a URL that begins with postgres:// or postgresql://',
    ],
    [
      'a cron expression of four fields',
      { KEYMESH_SWEEP_CRON: '0 * * *' },
      'KEYMESH_SWEEP_CRON must be a cron expression of five or six fields',
    ],
    ['a port that is none', { PORT: '70000' }, 'PORT must be a whole number from 0 to 65535'],
    [
      'a proxy that is neither address nor network',
      { KEYMESH_TRUST_PROXY: '10.0.0.0/99' },
      'KEYMESH_TRUST_PROXY must be addresses or networks such as 10.0.0.0/8, or loopback, linklocal, uniquelocal',
    ],
    [
      'a short password',
      { KEYMESH_ADMIN_PASSWORD: 'short' },
      'KEYMESH_ADMIN_PASSWORD must be 8 to 256 characters long',
    ],
    [
      'a user name with a space',
      { KEYMESH_ADMIN_USERNAME: 'the admin' },
      'KEYMESH_ADMIN_USERNAME may contain letters, digits and `.`, `_`, `@`, `+`, `-`, and begins with a letter or digit',
    ],
    [
      'a flag that is no flag',
      { KEYMESH_CREDENTIAL_NAME_OPTIONAL: 'yes' },
      'KEYMESH_CREDENTIAL_NAME_OPTIONAL must be true or false',
    ],
    [
      'an unknown role',
      { KEYMESH_ROLES: 'worker,cook' },
      'KEYMESH_ROLES knows the roles api, worker, scheduler, not cook',
    ],
    [
      'a database without keys',
      { DATABASE_URL: 'postgres://db/keymesh' },
      'KEYMESH_KEYS must be given with DATABASE_URL, the same for all replicas (`keymesh keys generate` makes one)',
    ],
    [
      'a name that is no setting',
      { KEYMESH_CONCURENCY: '8' },
      'KEYMESH_CONCURENCY is not a setting of Keymesh; is it misspelt?',
    ],
  ])('refuses %s', (_sentence, env, problem) => {
    expect(problemsOf(env)).toEqual([problem])
  })

  const SIGN_IN = {
    KEYMESH_AUTH_URL: 'https://auth.example/',
    KEYMESH_AUTH_USERNAME: 'keymesh',
    KEYMESH_AUTH_PASSWORD: 'hunter-2',
  }

  it('reads where a remote catalogue is, and a token for it', () => {
    const env = { KEYMESH_APIM_URL: 'https://apim.example/base/api/v2/apim/', KEYMESH_APIM_TOKEN: 'the-token' }
    const { remote } = configOf({ ...env, KEYMESH_APIM_POLL_CRON: '*/5 * * * *' })
    expect(remote).toMatchObject({ url: 'https://apim.example/base', access: { kind: 'token' } })
    expect(remote?.access.kind === 'token' && remote.access.token.reveal()).toBe('the-token')
    expect(JSON.stringify(remote) + inspect(remote, { depth: 9 })).not.toContain('the-token')
  })

  it.each([
    ['a user of one account', SIGN_IN, null],
    ['a user of several accounts', { ...SIGN_IN, KEYMESH_AUTH_ACCOUNT: 'north' }, 'north'],
  ])('reads where a remote catalogue is, and %s who makes a token for it', (_sentence, signIn, account) => {
    const { remote } = configOf({ KEYMESH_APIM_URL: 'http://apim.example', ...signIn })
    const access = { kind: 'sign-in', url: 'https://auth.example', username: 'keymesh', account }
    expect(remote).toMatchObject({ url: 'http://apim.example', access })
    expect(remote?.access.kind === 'sign-in' && remote.access.password.reveal()).toBe('hunter-2')
    expect(JSON.stringify(remote) + inspect(remote, { depth: 9 })).not.toContain('hunter-2')
  })

  const APIM = { KEYMESH_APIM_URL: 'https://apim.example' }
  it.each<readonly [sentence: string, env: Environment, problems: readonly string[]]>([
    [
      'without a token',
      APIM,
      ['KEYMESH_APIM_TOKEN must be given with KEYMESH_APIM_URL, or KEYMESH_AUTH_URL and a user'],
    ],
    [
      'with half a sign-in',
      { ...APIM, KEYMESH_AUTH_USERNAME: 'keymesh' },
      ['KEYMESH_AUTH_URL', 'KEYMESH_AUTH_PASSWORD'].map(
        (name) => `${name} must be given with the other settings of the sign-in`,
      ),
    ],
    [
      'with a token and a sign-in',
      { ...APIM, KEYMESH_APIM_TOKEN: 'the-token', KEYMESH_AUTH_ACCOUNT: 'north' },
      ['KEYMESH_AUTH_ACCOUNT stands beside KEYMESH_APIM_TOKEN; give one of them'],
    ],
    [
      'with a token and no address',
      { KEYMESH_APIM_TOKEN: 'the-token' },
      ['KEYMESH_APIM_TOKEN has no use without KEYMESH_APIM_URL'],
    ],
    [
      'with a token of two lines',
      { ...APIM, KEYMESH_APIM_TOKEN: 'the-token\n' },
      ['KEYMESH_APIM_TOKEN must be a token, without blanks and line breaks'],
    ],
    ...['ftp://apim.example', 'apim.example', 'https://user:hunter-2@apim.example', 'https://apim.example/?page=1'].map(
      (url) =>
        [
          `at ${url.replace(/hunter-2/, '…')}`,
          { KEYMESH_APIM_URL: url, KEYMESH_APIM_TOKEN: 'the-token' },
          [
            'KEYMESH_APIM_URL must be a URL that begins with http:// or https://, without user name, query and fragment',
          ],
        ] as const,
    ),
  ])('refuses a remote catalogue %s', (_sentence, env, problems) => {
    expect(problemsOf(env)).toEqual(problems)
  })

  it('refuses a log level that it does not know', () => {
    expect(problemsOf({ KEYMESH_LOG_LEVEL: 'loud' })).toEqual([expect.stringMatching(/^KEYMESH_LOG_LEVEL .*"silent"/)])
  })

  it('names every problem at once', () => {
    const problems = problemsOf({
      KEYMESH_CONCURRENCY: '0',
      KEYMESH_LEASE: 'soon',
      KEYMESH_ROLES: 'cook',
      KEYMESH_SPEED: 'high',
      DATABASE_URL: 'postgres://db/keymesh',
    })
    const names = problems.map((problem) => problem.split(' ')[0])
    expect(names.toSorted()).toEqual([
      'KEYMESH_CONCURRENCY',
      'KEYMESH_KEYS',
      'KEYMESH_LEASE',
      'KEYMESH_ROLES',
      'KEYMESH_SPEED',
    ])
  })

  it('leaves names alone that are not its own, or are for the demo and the tests', () => {
    const env = {
      HOME: '/home/me',
      KEYMESHED: 'yes',
      KEYMESH_DEMO_BROKER_1_PASSWORD: 'x',
      KEYMESH_TEST_DATABASE_URL: 'x',
    }
    expect(() => configOf(env)).not.toThrow()
  })

  it('shows no key ring and no secret that a portal file names', () => {
    const config = configOf({
      KEYMESH_KEYS: 'the-ring-itself',
      KEYMESH_ADMIN_PASSWORD: 'hunter-2',
      BROKER_PASSWORD: 'hunter-2-hunter',
    })
    const secret = config.secretFromEnvironment('BROKER_PASSWORD')
    expect(secret?.reveal()).toBe('hunter-2-hunter')
    for (const text of [
      JSON.stringify([config, secret]),
      inspect([config, secret], { depth: 9 }),
      `${config.keys}${secret}`,
    ]) {
      expect(text).not.toMatch(/the-ring-itself|hunter-2/)
    }
  })

  it('shows no value of a setting that it refuses', () => {
    const secret = 'postgres-password-in-a-wrong-place'
    const problems = problemsOf({
      DATABASE_URL: secret,
      REDIS_URL: secret,
      KEYMESH_ADMIN_PASSWORD: secret.repeat(20),
      KEYMESH_ACCOUNT: 'one',
      KEYMESH_LEASE: secret,
    })
    expect(problems.join('\n')).not.toContain(secret)
  })
})

describe('traces', () => {
  const tracesOf = (env: Record<string, string>) =>
    configOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel:4318/', ...env }).traces

  it('go to the collector that the standard variables name', () => {
    expect(tracesOf({})).toMatchObject({
      url: 'http://otel:4318/v1/traces',
      headers: null,
      resource: { 'service.name': 'keymesh', 'service.instance.id': 'node-1-42' },
      sampler: 'always_on',
      followsParent: true,
    })
    const own = 'https://traces.example.com/intake'
    expect(tracesOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own })?.url).toBe(own)
    expect(tracesOf({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' })).toMatchObject({
      sampler: 'traceidratio',
      sampledShare: 0.25,
      followsParent: false,
    })
  })

  it.each<Record<string, string>>([
    { OTEL_SDK_DISABLED: 'true' },
    { OTEL_TRACES_EXPORTER: 'none' },
    { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
  ])('are not made with %o', (env) => {
    expect(tracesOf(env)).toBeNull()
  })

  it('say what service they are of', () => {
    const attributes = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=other, team=a%2Cb,broken' }
    expect(tracesOf(attributes)?.resource).toMatchObject({ 'service.name': 'other', team: 'a,b' })
    expect(tracesOf({ ...attributes, OTEL_SERVICE_NAME: 'mesh' })?.resource['service.name']).toBe('mesh')
  })

  it('carry headers that nobody sees', () => {
    const traces = tracesOf({ OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20hunter-2,x=1' })
    expect(traces?.headers?.reveal()).toEqual({ Authorization: 'Bearer hunter-2', x: '1' })
    expect(`${JSON.stringify(traces)}${inspect(traces, { depth: 9 })}`).not.toContain('hunter')
  })
})

describe('the environment', () => {
  it('is copied, with the process that it belongs to', () => {
    const { env, pid, hostname } = readEnv()
    expect(pid).toBe(process.pid)
    expect(hostname).not.toBe('')
    expect(env).toEqual({ ...process.env })
    expect(env).not.toBe(process.env)
  })
})
