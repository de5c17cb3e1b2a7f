import { z } from 'zod'
import { OBJECT_KINDS } from '../../domain/broker-object.ts'
import { notFound } from '../../domain/refusals.ts'
import { countDrift, type DriftFilter, readDrift } from '../../store/drift-view.ts'
import { type RunFilter, readRun, readRuns } from '../../store/runs-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { limitOf, listOf, one, oneOf, pageParameters, paginate } from '../pagination.ts'
import { BASE, OPERATIONS, READ } from './access.ts'
import { DRIFT_KINDS, drift, flag, idParameter, run, TRIGGERS } from './operations-schemas.ts'
import { present } from './present.ts'

const MAX_DRIFT_ID = 2 ** 53 - 1
/** A run changes a bounded number of objects; what is beyond is in the drift list. */
const DRIFT_OF_RUN = 100

const runQuery = z.strictObject({
  ...pageParameters,
  brokerId: idParameter.optional(),
  registrationId: idParameter.optional(),
  kind: z.enum(['sweep', 'registration']).optional(),
  trigger: z.enum(TRIGGERS).optional(),
  outcome: idParameter.optional().describe('Such as in-sync, held, error; of a sweep done, with-errors, failed.'),
})

const driftQuery = z.strictObject({
  ...pageParameters,
  brokerId: idParameter.optional(),
  registrationId: idParameter.optional(),
  kind: z.enum(DRIFT_KINDS).optional(),
  objectKind: z.enum(OBJECT_KINDS).optional(),
  action: z.enum(['reported', 'repaired', 'held', 'failed']).optional(),
  runId: idParameter.optional().describe('Found in this run, or repaired by it.'),
  open: flag.default(false).describe('Only what is not repaired.'),
})

/** What runs did and found. */
export async function recordRoutes(app: App, { db }: HttpDependencies): Promise<void> {
  app.get(
    `${BASE}/runs`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Runs, newest first',
        querystring: runQuery,
        response: { 200: listOf(run) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { pageSize: _size, pageNumber: _number, ...given } = query
      const filter: RunFilter = { ...present(given), accountId }
      const { runs, count } = await readRuns(db, filter, limitOf(query))
      return paginate(query, runs, count)
    },
  )
  app.get(
    `${BASE}/runs/:runId`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'One run, with the differences it found or repaired',
        params: z.strictObject({ runId: idParameter }),
        response: { 200: oneOf(run.extend({ differences: z.array(drift) })) },
      },
    },
    async ({ principal: { accountId }, params: { runId } }) => {
      const found = await readRun(db, accountId, runId)
      if (found === null) throw notFound('run', runId)
      const differences = await readDrift(db, { accountId, runId, limit: DRIFT_OF_RUN })
      return one({ ...found, differences: [...differences] })
    },
  )
  driftRoutes(app, db)
}

function driftRoutes(app: App, db: HttpDependencies['db']): void {
  app.get(
    `${BASE}/drift`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'Differences that were found on brokers, newest first',
        querystring: driftQuery,
        response: { 200: listOf(drift) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { pageSize: _size, pageNumber: _number, open, ...given } = query
      const filter: Omit<DriftFilter, 'limit'> = { ...present(given), openOnly: open, accountId }
      const rows = await readDrift(db, { ...filter, ...limitOf(query) })
      return paginate(query, rows, await countDrift(db, filter))
    },
  )
  app.get(
    `${BASE}/drift/:driftId`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'One difference',
        params: z.strictObject({ driftId: z.coerce.number('must be a number').int().min(1).max(MAX_DRIFT_ID) }),
        response: { 200: oneOf(drift) },
      },
    },
    async ({ principal: { accountId }, params: { driftId } }) => {
      const [found] = await readDrift(db, { accountId, id: driftId, limit: 1 })
      if (found === undefined) throw notFound('difference', String(driftId))
      return one(found)
    },
  )
}
