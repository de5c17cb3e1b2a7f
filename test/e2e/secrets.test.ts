import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorLine } from '../../src/domain/errors.ts'
import { renderPlan } from '../../src/reconcile/render.ts'
import { openQueue, startWorkerRole } from '../../src/roles.ts'
import { requestPasswords } from '../../src/store/pairs.ts'
import { readStatus } from '../../src/store/status-view.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { dumpDatabase, findSecrets } from '../helpers/secret-scan.ts'
import { until } from '../helpers/service.ts'
import { suppliedCredential } from '../integration/import-fixtures.ts'
import { client, givenSecretOf, keyOf, ordersPortal } from '../integration/reconcile-fixtures.ts'

const SEMP_PASSWORD = 'semp-password "Jw72\\'
const FOREIGN_SECRET = 'the-secret-of-a-legacy-client'
const NEXT_SECRET = 'the-next "secret\\ of app-0'

/** Everything that could be read by somebody who may not know a secret, and where. */
const readable = new Map<string, string>()
/** What must not be in it, by what it is. */
const secrets = new Map<string, string>()
let log = ''
let mesh: TestMesh

/** Runs all of the main job, and much of what can go wrong with it. */
beforeAll(async () => {
  const lines = {
    write: (line: string) => {
      log += line
    },
  }
  mesh = await withMesh({
    sandbox: { password: SEMP_PASSWORD },
    log: pino({ level: 'trace' }, lines),
    portal: (brokers) => ordersPortal(brokers, CLIENTS),
  })
  const { context } = mesh
  const broker = mesh.broker()
  const errors: unknown[] = []
  const trying = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => errors.push(error))

  // Through the queue, which has tables of its own.
  broker.state.clientUsernames.put(keyOf('taken'), { enabled: true, password: FOREIGN_SECRET })
  const queue = await openQueue(context)
  const stopWorker = await startWorkerRole(context, queue)
  await queue.enqueue.pairs(
    CLIENTS.map(({ id }) => mesh.pair(id)),
    'on-demand',
  )
  await until('all but one are in sync', async () =>
    (await mesh.pairs()).filter(({ state }) => state === 'in-sync').length === CLIENTS.length - 1 ? true : null,
  )
  // A job that fails keeps its error in the queue.
  broker.setFaults([{ fault: 'half-body', match: { method: 'PATCH' } }])
  await requestPasswords(context.db, { accountId: context.accountId })
  await queue.enqueue.pairs([mesh.pair('app-0'), mesh.pair('app-1')], 'on-demand')
  await until('a job failed', () => (log.includes('job.failed') ? true : null))
  broker.setFaults([])
  await stopWorker()
  await queue.backend.close()

  await mesh.import({ registrations: [client('app-0', { credentials: [NEXT] }), ...CLIENTS.slice(1)] })
  await remember('the plan')
  await trying(mesh.sweep())
  broker.state.setPassword(keyOf('app-1'), 'somebody-elses-password')
  broker.state.clientUsernames.remove(keyOf('app-2'))
  broker.state.aclProfiles.change('app-1', { publishTopicDefaultAction: 'allow' })
  await requestPasswords(context.db, { accountId: context.accountId, consumerKey: keyOf('app-1') })
  await remember('the plan of what drifted')
  await trying(mesh.sweep())
  for (const fault of ['http-401', 'http-503', 'junk-json', 'reset'] as const) {
    await requestPasswords(context.db, { accountId: context.accountId })
    broker.setFaults([{ fault, match: { method: 'PATCH' }, times: 8 }])
    await trying(mesh.sweep())
  }
  broker.setFaults([{ fault: 'http-401' }])
  await trying((await mesh.another('refused')).engine.sweep(mesh.key(), { trigger: 'sweep' }))
  broker.setFaults([])
  await trying(mesh.sweep())

  for (const [key, secret] of await mesh.secrets()) secrets.set(`the secret of ${key}`, secret)
  secrets.set('the first secret of app-0', givenSecretOf('app-0'))
  secrets.set('the password of the SEMP user', SEMP_PASSWORD)
  secrets.set('the password of a foreign client', FOREIGN_SECRET)
  secrets.set('a password that somebody set', 'somebody-elses-password')
  for (const [kid, key] of context.keyRing.keys) secrets.set(`key ${kid}`, key.export().toString('base64url'))
  secrets.set('the password of the database', new URL(context.connectionString).password)

  readable.set('the log', log)
  readable.set(
    'the errors',
    JSON.stringify(errors) + errors.map((error) => errorLine(error)).join('\n') + errors.map(String),
  )
  readable.set('the drift', JSON.stringify(await mesh.drift()))
  readable.set('the status', JSON.stringify(await readStatus(context.db, context.accountId)))
  for (const [table, rows] of await dumpDatabase(context.db)) readable.set(`the table ${table}`, rows)
})
afterAll(() => mesh[Symbol.asyncDispose]())

const NEXT = suppliedCredential('main', keyOf('app-0'), NEXT_SECRET)
const CLIENTS = [client('app-0'), client('app-1'), client('app-2'), client('taken')]

async function remember(what: string): Promise<void> {
  const plans = await mesh.plans()
  expect(plans.length).toBeGreaterThan(1)
  readable.set(what, JSON.stringify(plans) + plans.flatMap((plan) => renderPlan(plan)).join('\n'))
}

describe('after the whole main job, with all that went wrong', () => {
  it('there is something to search, and everything to search for', async () => {
    for (const table of ['public.credentials', 'public.brokers', 'public.ledger', 'public.runs', 'public.drift']) {
      expect(readable.get(`the table ${table}`)?.length, table).toBeGreaterThan(20)
    }
    const queue = [...readable].filter(([name]) => name.startsWith('the table bullmq.'))
    expect(queue.map(([, rows]) => rows).join('')).toContain('reconcile-pair')
    expect(readable.get('the log')).toContain('job.failed')
    expect(readable.get('the errors')).toContain('SEMP_LOGIN_REFUSED')
    expect(readable.get('the table public.runs')).toMatch(/BROKER_CONNECTION_LOST/)
    expect(readable.get('the plan of what drifted')).toContain('set-password')
    // The broker has every one of them, so they were at work.
    const { state } = mesh.broker()
    expect(state.passwordOf(keyOf('app-0')) === NEXT_SECRET).toBe(true)
    expect(state.passwordOf(keyOf('app-1')) === givenSecretOf('app-1')).toBe(true)
    expect(secrets.size).toBeGreaterThanOrEqual(9)
    for (const [what, secret] of secrets) expect(secret.length, what).toBeGreaterThanOrEqual(8)
  })

  it('no secret is in the log, an error, a plan, the drift, the status, or any table', () => {
    expect(findSecrets(secrets, readable)).toEqual([])
  })
})
