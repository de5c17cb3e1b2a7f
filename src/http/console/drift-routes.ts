import { z } from 'zod'
import { OBJECT_KINDS } from '../../domain/broker-object.ts'
import { conflict, notFound } from '../../domain/refusals.ts'
import { boundsOf, type ChartFilter, countOpenDrift, type DriftSpan, readDriftChart } from '../../store/drift-chart.ts'
import { readDrift, readDriftTimeline } from '../../store/drift-view.ts'
import { recordAdoption } from '../../store/pairs.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { knownBroker } from '../operations/known-objects.ts'
import { DRIFT_KINDS } from '../operations/operations-schemas.ts'
import { present } from '../operations/present.ts'
import { CHANGE, HIDDEN, LOOK } from './access.ts'
import { namedBrokers, offBecauseOf } from './broker-standing.ts'
import { ADOPTABLE, differencePage } from './difference-page.ts'
import { driftPage } from './drift-page.ts'
import { leaveNotice } from './notices.ts'
import { driftPath, kindWords } from './record-parts.ts'
import { cursorOf, cursorText, epochMs, named, oneOfThese, pageOf, parseNumericCursor } from './record-queries.ts'
import { remembered } from './remembered.ts'
import { seeOther, sendPage, viewerOf } from './send-page.ts'

const PAGE_SIZE = 50
const MAX_DRIFT_ID = 2 ** 53 - 1

const query = z.object({
  span: oneOfThese(['24h', '30d']).transform((span) => span ?? '24h'),
  broker: named,
  kind: oneOfThese(DRIFT_KINDS),
  registration: named,
  open: oneOfThese(['1']),
  from: epochMs,
  after: cursorText,
})

const params = z.object({ driftId: z.coerce.number('must be a number').int().min(1).max(MAX_DRIFT_ID) })

/** A page does not wait longer for the counts of a month with very many differences. */
const LONGEST_WAIT_MS = 60

interface Chart {
  readonly filter: ChartFilter
  readonly span: DriftSpan
}

/** What drifted, when, and what became of it. */
export async function driftPages(console: App, dependencies: HttpDependencies): Promise<void> {
  const { db, now, log } = dependencies
  const charts = remembered({
    make: (key) => {
      const { filter, span }: Chart = JSON.parse(key)
      return readDriftChart(db, filter, span, now())
    },
    waitMs: LONGEST_WAIT_MS,
    onError: (err) => log.warn({ event: 'console.chart-missing', err }, 'Drift could not be counted for the console'),
  })
  console.addHook('onClose', () => charts.idle())
  console.get(
    '/drift',
    { config: { access: LOOK }, schema: { ...HIDDEN, querystring: query } },
    async (request, reply) => {
      const { accountId } = request.principal
      const asked = request.query
      const nowMs = now()
      const cursor = parseNumericCursor(asked.after)
      const filter = {
        accountId,
        ...present({ brokerId: asked.broker, kind: asked.kind, registrationId: asked.registration }),
      }
      const { stepMs } = boundsOf(asked.span, nowMs)
      const bucket = asked.from === undefined ? {} : { detected: { fromMs: asked.from, untilMs: asked.from + stepMs } }
      const [brokers, buckets, open, differences] = await Promise.all([
        namedBrokers(db, accountId),
        charts.read(JSON.stringify({ filter, span: asked.span } satisfies Chart)),
        countOpenDrift(db, filter),
        readDriftTimeline(db, {
          ...filter,
          ...bucket,
          openOnly: asked.open === '1',
          after: cursor === null ? null : { detectedAtMs: cursor.atMs, id: cursor.id },
          limit: PAGE_SIZE + 1,
        }),
      ])
      const { shown, last } = pageOf(differences, PAGE_SIZE)
      const older = last === null ? null : cursorOf(last.detectedAtMs, last.id)
      const data = { query: asked, brokers, kinds: DRIFT_KINDS, buckets, open, differences: shown, older, nowMs }
      return sendPage(request, reply, driftPage(data))
    },
  )
  differenceRoutes(console, dependencies)
}

function differenceRoutes(console: App, { db, now }: HttpDependencies): void {
  console.get(
    '/drift/:driftId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params } },
    async (request, reply) => {
      const { accountId } = request.principal
      const [difference] = await readDrift(db, { accountId, id: request.params.driftId, limit: 1 })
      if (difference === undefined) throw notFound('difference', String(request.params.driftId))
      const { brokerId, registrationId } = difference
      const place = { broker: brokerId, ...(registrationId === null ? {} : { registration: registrationId }) }
      const offBecause = await offBecauseOf(db, accountId, place)
      const isAdministrator = viewerOf(request)?.isAdministrator ?? false
      return sendPage(request, reply, differencePage({ difference, nowMs: now(), isAdministrator, offBecause }))
    },
  )
  console.post(
    '/drift/:driftId/adopt',
    { config: { access: CHANGE, audit: 'object.adopt' }, schema: { ...HIDDEN, params } },
    async (request, reply) => {
      const { accountId, userName } = request.principal
      const { driftId } = request.params
      const [difference] = await readDrift(db, { accountId, id: driftId, limit: 1 })
      if (difference === undefined) throw notFound('difference', String(driftId))
      const { objectKind, objectName: name, brokerId, reason, repairedAtMs } = difference
      const kind = OBJECT_KINDS.find((each) => each === objectKind)
      if (kind === undefined || !ADOPTABLE.has(reason) || repairedAtMs !== null) {
        throw conflict(`The ${kindWords(objectKind)} ${name} is in no conflict that an adoption settles.`)
      }
      request.auditSubject = `${kind} ${name} on ${brokerId}`
      const broker = await knownBroker(db, accountId, brokerId)
      await recordAdoption(db, { accountId, brokerId: broker }, { kind, name }, userName)
      const text = `The ${kindWords(kind)} ${name} is ours with the next run on broker ${brokerId}. Reconcile to do it at once.`
      leaveNotice(request, reply, { tone: 'good', text })
      return seeOther(reply, driftPath(driftId))
    },
  )
}
