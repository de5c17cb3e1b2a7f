import { z } from 'zod'
import { notFound } from '../../domain/refusals.ts'
import { readDrift } from '../../store/drift-view.ts'
import { confirmWithdrawals } from '../../store/pairs.ts'
import { type RunView, readRun, readRunsAfter, readSweepProgress } from '../../store/runs-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { collectPlans } from '../operations/collect-plans.ts'
import { enqueuePairs } from '../operations/enqueueing.ts'
import { knownBroker } from '../operations/known-objects.ts'
import { idParameter, TRIGGERS } from '../operations/operations-schemas.ts'
import { present } from '../operations/present.ts'
import { reconcileNow, subjectOf } from '../operations/reconcile-now.ts'
import { CHANGE, HIDDEN, LOOK } from './access.ts'
import { namedBrokers, offBecauseOf } from './broker-standing.ts'
import { counted } from './components.ts'
import { leaveNotice, type Notice } from './notices.ts'
import { planPage } from './plan-page.ts'
import { back, cursorOf, cursorText, named, oneOfThese, pageOf, parseCursor } from './record-queries.ts'
import { runPage } from './run-page.ts'
import { runsPage } from './runs-page.ts'
import { seeOther, sendPage, viewerOf } from './send-page.ts'

const PAGE_SIZE = 50
/** On the page of one run. */
const MOST_DIFFERENCES = 100
const MOST_RUNS = 50
const MOST_PLANS = 50
/** Brokers are read for it: it ends, incomplete, before the handler's own time is over. */
const PLAN_DEADLINE_MS = 30_000

const runsQuery = z.object({
  broker: named,
  kind: oneOfThese(['sweep', 'registration']),
  trigger: oneOfThese(TRIGGERS),
  outcome: named,
  registration: named,
  after: cursorText,
})
const place = { broker: named, registration: named }

/** What ran, and what a run would do now. */
export async function runPages(console: App, dependencies: HttpDependencies): Promise<void> {
  const { db, now } = dependencies
  console.get(
    '/runs',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: runsQuery } },
    async (request, reply) => {
      const { accountId } = request.principal
      const { broker, registration, after, ...others } = request.query
      const cursor = parseCursor(after)
      const [brokers, runs] = await Promise.all([
        namedBrokers(db, accountId),
        readRunsAfter(
          db,
          { ...present({ ...others, brokerId: broker, registrationId: registration }), accountId },
          { after: cursor === null ? null : { startedAtMs: cursor.atMs, id: cursor.id }, limit: PAGE_SIZE + 1 },
        ),
      ])
      const { shown, last } = pageOf(runs, PAGE_SIZE)
      const older = last === null ? null : cursorOf(last.startedAtMs, last.id)
      return sendPage(request, reply, runsPage({ query: request.query, brokers, runs: shown, older, nowMs: now() }))
    },
  )
  console.get(
    '/runs/:runId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params: z.object({ runId: idParameter }) } },
    async (request, reply) => {
      const { accountId } = request.principal
      const run = await readRun(db, accountId, request.params.runId)
      if (run === null) throw notFound('run', request.params.runId)
      const { brokerId, registrationId } = run
      const nowMs = now()
      const [differences, during, progress, offBecause] = await Promise.all([
        readDrift(db, { accountId, runId: run.id, limit: MOST_DIFFERENCES + 1 }),
        runsDuring(dependencies, accountId, run, nowMs),
        run.finishedAtMs === null ? readSweepProgress(db, accountId, run) : null,
        offBecauseOf(db, accountId, {
          broker: brokerId,
          ...(registrationId !== null && { registration: registrationId }),
        }),
      ])
      const data = {
        run,
        differences: differences.slice(0, MOST_DIFFERENCES),
        moreDifferences: differences.length > MOST_DIFFERENCES,
        during: during.slice(0, MOST_RUNS),
        moreDuring: during.length > MOST_RUNS,
        progress,
        nowMs,
        isAdministrator: viewerOf(request)?.isAdministrator ?? false,
        offBecause,
      }
      return sendPage(request, reply, runPage(data))
    },
  )
  planRoutes(console, dependencies)
}

/** Of a sweep: what was done on its broker while it ran. */
async function runsDuring(
  { db }: HttpDependencies,
  accountId: string,
  { kind, brokerId, startedAtMs, finishedAtMs }: RunView,
  nowMs: number,
): Promise<readonly RunView[]> {
  if (kind !== 'sweep') return []
  const started = { fromMs: startedAtMs, untilMs: finishedAtMs ?? nowMs }
  return readRunsAfter(
    db,
    { accountId, brokerId, kind: 'registration', started },
    { after: null, limit: MOST_RUNS + 1 },
  )
}

function planRoutes(console: App, dependencies: HttpDependencies): void {
  const { db, now } = dependencies
  console.get(
    '/plan',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: z.object(place) } },
    async (request, reply) => {
      const { accountId } = request.principal
      const { broker, registration } = request.query
      const isChosen = broker !== undefined || registration !== undefined
      const deadline = AbortSignal.any([request.signal, AbortSignal.timeout(PLAN_DEADLINE_MS)])
      const what = { brokerId: broker, registrationId: registration, allowDisruptive: false, limit: MOST_PLANS }
      const data = {
        query: request.query,
        brokers: await namedBrokers(db, accountId),
        found: isChosen ? await collectPlans(dependencies, accountId, what, deadline) : null,
        nowMs: now(),
        isAdministrator: viewerOf(request)?.isAdministrator ?? false,
        offBecause: await offBecauseOf(db, accountId, request.query),
      }
      return sendPage(request, reply, planPage(data))
    },
  )
  console.post(
    '/plan/reconcile',
    {
      config: { access: CHANGE, audit: 'reconcile' },
      schema: { ...HIDDEN, body: z.object({ ...place, disruptive: z.literal('1').optional(), back }) },
    },
    async (request, reply) => {
      const { broker, registration, disruptive, back: where } = request.body
      const asked = { brokerId: broker, registrationId: registration, allowDisruptive: disruptive === '1' }
      request.auditSubject = subjectOf(asked)
      const { count, sweeps, queued } = await reconcileNow(dependencies, request.principal.accountId, asked)
      leaveNotice(request, reply, noticeOf(count, sweeps.length > 0 ? 'sweep' : 'run', queued))
      return seeOther(reply, where)
    },
  )
  console.post(
    '/plan/confirm-withdrawals',
    {
      config: { access: CHANGE, audit: 'withdrawals.confirm' },
      schema: { ...HIDDEN, body: z.object({ broker: idParameter, back }) },
    },
    async (request, reply) => {
      const { accountId } = request.principal
      const { broker, back: where } = request.body
      request.auditSubject = broker
      const brokerId = await knownBroker(db, accountId, broker)
      const pairs = await confirmWithdrawals(db, { accountId, brokerId })
      const { count, queued } = await enqueuePairs(dependencies, pairs)
      leaveNotice(request, reply, noticeOf(count, 'run', queued))
      return seeOther(reply, where)
    },
  )
}

function noticeOf(count: number, what: 'sweep' | 'run', queued: boolean): Notice {
  if (count === 0) return { tone: 'warn', text: 'There was nothing to run.' }
  const asked = `${counted(count, what)} asked for; the result will be among the runs.`
  if (queued) return { tone: 'good', text: asked }
  const later = what === 'sweep' ? 'ask again' : 'the poll will find it'
  return { tone: 'warn', text: `${asked} The queue did not take it in time; ${later}.` }
}
