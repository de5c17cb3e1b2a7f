import { z } from 'zod'
import { readPauses } from '../../store/pause.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, pageQuery, paginate } from '../pagination.ts'
import { BASE, CHANGE, OPERATIONS, READ } from './access.ts'
import { enqueued, epochMs, idParameter } from './operations-schemas.ts'
import { pauseScope, resumeScope } from './pause-requests.ts'

const brokerParams = z.strictObject({ brokerId: idParameter })
const registrationParams = z.strictObject({ registrationId: idParameter })
const paused = z.strictObject({
  scope: z.enum(['account', 'broker', 'registration']),
  id: z.string().nullable(),
  pausedBy: z.string().nullable(),
  pausedAtMs: epochMs.nullable(),
})

const pauseSchema = (what: string) => ({
  tags: OPERATIONS,
  summary: `Pause ${what}: what runs ends, nothing begins`,
  response: { 204: noContent },
})
const resumeSchema = (what: string) => ({
  tags: OPERATIONS,
  summary: `Resume ${what}; what lags is reconciled at once`,
  response: { 202: oneOf(enqueued) },
})

/** Pauses of everything, of a broker, of a registration. They add up: all that concern a run must be resumed. */
export async function pauseRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  app.get(
    `${BASE}/pauses`,
    {
      config: { access: READ },
      schema: {
        tags: OPERATIONS,
        summary: 'What is paused',
        querystring: pageQuery,
        response: { 200: listOf(paused) },
      },
    },
    async ({ principal: { accountId }, query }) => {
      const { pauses, count } = await readPauses(db, accountId, limitOf(query))
      return paginate(query, pauses, count)
    },
  )
  accountPauses(app, dependencies)
  brokerPauses(app, dependencies)
  registrationPauses(app, dependencies)
}

function accountPauses(app: App, dependencies: HttpDependencies): void {
  const config = { access: CHANGE }
  app.post(
    `${BASE}/pause`,
    { config: { ...config, audit: 'pause' }, schema: pauseSchema('everything of the account') },
    async ({ principal: { accountId, userName } }, reply) => {
      await pauseScope(dependencies, { accountId, scope: 'account' }, userName)
      return reply.code(204).send()
    },
  )
  app.post(
    `${BASE}/resume`,
    { config: { ...config, audit: 'resume' }, schema: resumeSchema('everything of the account') },
    async ({ principal: { accountId } }, reply) => {
      reply.code(202)
      return one(await resumeScope(dependencies, { accountId, scope: 'account' }))
    },
  )
}

function brokerPauses(app: App, dependencies: HttpDependencies): void {
  app.post(
    `${BASE}/brokers/:brokerId/pause`,
    {
      config: { access: CHANGE, audit: 'broker.pause' },
      schema: { ...pauseSchema('a broker'), params: brokerParams },
    },
    async ({ principal: { accountId, userName }, params }, reply) => {
      await pauseScope(dependencies, { accountId, scope: 'broker', id: params.brokerId }, userName)
      return reply.code(204).send()
    },
  )
  app.post(
    `${BASE}/brokers/:brokerId/resume`,
    {
      config: { access: CHANGE, audit: 'broker.resume' },
      schema: { ...resumeSchema('a broker'), params: brokerParams },
    },
    async ({ principal: { accountId }, params }, reply) => {
      reply.code(202)
      return one(await resumeScope(dependencies, { accountId, scope: 'broker', id: params.brokerId }))
    },
  )
}

function registrationPauses(app: App, dependencies: HttpDependencies): void {
  app.post(
    `${BASE}/registrations/:registrationId/pause`,
    {
      config: { access: CHANGE, audit: 'registration.pause' },
      schema: { ...pauseSchema('a registration'), params: registrationParams },
    },
    async ({ principal: { accountId, userName }, params }, reply) => {
      await pauseScope(dependencies, { accountId, scope: 'registration', id: params.registrationId }, userName)
      return reply.code(204).send()
    },
  )
  app.post(
    `${BASE}/registrations/:registrationId/resume`,
    {
      config: { access: CHANGE, audit: 'registration.resume' },
      schema: { ...resumeSchema('a registration'), params: registrationParams },
    },
    async ({ principal: { accountId }, params }, reply) => {
      reply.code(202)
      return one(await resumeScope(dependencies, { accountId, scope: 'registration', id: params.registrationId }))
    },
  )
}
