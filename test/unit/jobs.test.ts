import { describe, expect, it } from 'vitest'
import { type RunContext, runJob } from '../../jobs/run-job.ts'
import { accountId, brokerId, registrationId } from '../../src/domain/ids.ts'
import { Secret } from '../../src/domain/secret.ts'
import { JOB_PAYLOADS, parsePayload } from '../../src/queue/job-payloads.ts'
import type { RunningJob } from '../../src/queue/job-queue.ts'

const toPair = { accountId: accountId('a'), brokerId: brokerId('b'), registrationId: registrationId('r') }
const pair = { accountId: 'a', brokerId: 'b', registrationId: 'r', trigger: 'poll' }
const job = (name: string, data: unknown): RunningJob => ({
  id: '1',
  name,
  data,
  attempt: 1,
  signal: new AbortController().signal,
  progress: () => undefined,
})

function recording(overrides: Partial<RunContext['services']> = {}) {
  const calls: unknown[][] = []
  const record =
    <Result>(name: string, result: Result) =>
    async (...parameters: unknown[]): Promise<Result> => {
      calls.push([name, ...parameters.filter((each) => !(each instanceof AbortSignal) && typeof each !== 'function')])
      return result
    }
  const context: RunContext = {
    followBrokers: record('follow', undefined),
    sweepSpreadMs: 0,
    enqueue: {
      registration: record('add registration', true),
      pairs: record('add pairs', true),
      sweep: record('add sweep', true),
      verify: record('add verify', true),
      notifications: record('add notifications', true),
    },
    services: {
      laggingPairs: record('lagging', []),
      revokedPairs: record('revoked', []),
      pairsOfRegistration: record('pairs of', []),
      reconcilePair: record('reconcile', 'done'),
      sweepBroker: record('sweep', undefined),
      verifyBroker: record('verify', undefined),
      usableBrokers: record('brokers', []),
      followRemoteCatalogue: record('follow remote', false),
      retireExpired: record('retire', 1),
      pruneRecords: record('prune', 1),
      dueEndpoints: record('due endpoints', [{ accountId: accountId('a'), endpointId: 'e' }]),
      deliverNotifications: record('deliver', 1),
      ...overrides,
    },
  }
  return { calls, context }
}

describe('a job', () => {
  it.each([
    ['poll-catalogue', {}, [['follow'], ['follow remote']]],
    [
      'poll-registrations',
      {},
      [
        ['revoked', 5_000],
        ['lagging', 5_000],
      ],
    ],
    [
      'reconcile-registration',
      { accountId: 'a', registrationId: 'r' },
      [
        ['pairs of', 'a', 'r'],
        ['add pairs', [], 'on-demand'],
      ],
    ],
    [
      'reconcile-pair',
      { ...pair, askedAtMs: 5 },
      [['reconcile', { accountId: 'a', brokerId: 'b', registrationId: 'r' }, 'poll']],
    ],
    [
      'sweep-broker',
      { accountId: 'a', brokerId: 'b', trigger: 'operator' },
      [['sweep', { accountId: 'a', brokerId: 'b' }, 'operator']],
    ],
    ['verify-broker', { accountId: 'a', brokerId: 'b' }, [['verify', { accountId: 'a', brokerId: 'b' }, {}]]],
    [
      'verify-broker',
      { accountId: 'a', brokerId: 'b', registrationId: 'r', protocol: 'mqtt', askedAtMs: 5 },
      [['verify', { accountId: 'a', brokerId: 'b' }, { registrationId: 'r', protocol: 'mqtt' }]],
    ],
    ['sweep-brokers', {}, [['brokers']]],
    ['retire-expired', {}, [['retire']]],
    ['prune-records', {}, [['prune']]],
    [
      'poll-notifications',
      {},
      [
        ['due endpoints', 500],
        ['add notifications', [{ accountId: 'a', endpointId: 'e' }]],
      ],
    ],
    [
      'deliver-notifications',
      { accountId: 'a', endpointId: 'e', askedAtMs: 5 },
      [['deliver', { accountId: 'a', endpointId: 'e' }]],
    ],
  ])('%s calls its function', async (name, data, expected) => {
    const { calls, context } = recording()
    expect(await runJob(job(name, data), context)).toEqual({ status: 'done' })
    expect(calls).toEqual(expected)
  })

  it('of the poll asks first for the end of credentials whose job was lost', async () => {
    const { calls, context } = recording({
      revokedPairs: async () => [toPair],
      laggingPairs: async () => [toPair],
    })
    await runJob(job('poll-registrations', {}), context)
    expect(calls).toEqual([
      ['add pairs', [toPair], 'revocation'],
      ['add pairs', [toPair], 'poll'],
    ])
  })

  it('of the catalogue asks what is to be reconciled when the remote catalogue changed', async () => {
    const { calls, context } = recording({ followRemoteCatalogue: async () => true })
    await runJob(job('poll-catalogue', {}), context)
    expect(calls).toEqual([['follow'], ['revoked', 5_000], ['lagging', 5_000]])
  })

  it('of a pair that another holds comes back a second later, and sooner when it ends a credential', async () => {
    const { context } = recording({ reconcilePair: async () => 'busy' })
    expect(await runJob(job('reconcile-pair', pair), context)).toEqual({ status: 'again', afterMs: 1_000 })
    const revocation = { ...pair, trigger: 'revocation' }
    expect(await runJob(job('reconcile-pair', revocation), context)).toEqual({ status: 'again', afterMs: 200 })
  })

  it('that this program does not know is left for a newer one', async () => {
    await expect(runJob(job('toString', {}), recording().context)).rejects.toMatchObject({
      code: 'JOB_UNKNOWN',
      fate: 'retry',
    })
  })

  it('with another payload fails for good and does not repeat the values', async () => {
    const failure = runJob(job('reconcile-pair', { ...pair, consumerSecret: 'hunter2' }), recording().context)
    await expect(failure).rejects.toMatchObject({ code: 'JOB_PAYLOAD', fate: 'stop' })
    await expect(failure).rejects.not.toThrow(/hunter2/)
  })
})

describe('payloads', () => {
  const valid = { accountId: 'a', brokerId: 'b', registrationId: 'r', trigger: 'sweep' }

  it.each([
    ['a secret', { ...valid, registrationId: new Secret('hunter2') }],
    ['an unknown trigger', { ...valid, trigger: 'hourly' }],
    ['a NUL', { ...valid, brokerId: 'a\u0000' }],
    ['a lone surrogate', { ...valid, brokerId: 'a\ud800' }],
    ['an endless name', { ...valid, brokerId: 'a'.repeat(257) }],
    ['an empty name', { ...valid, accountId: '' }],
  ])('refuse %s', (_what, data) => {
    expect(() => parsePayload('reconcile-pair', data)).toThrow(/payload of another shape/)
    expect(() => parsePayload('reconcile-pair', valid)).not.toThrow()
  })

  it('take no field beside their own', () => {
    for (const schema of Object.values(JOB_PAYLOADS)) {
      const parsed = schema.safeParse({ ...valid, password: 'hunter2' })
      expect(parsed.error?.issues.map(({ code }) => code)).toContain('unrecognized_keys')
    }
  })
})
