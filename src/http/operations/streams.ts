import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { OBJECT_KINDS } from '../../domain/broker-object.ts'
import { PROTOCOLS } from '../../domain/catalogue.ts'
import type { Operations } from '../../operations/operations.ts'
import { StoreOperations } from '../../operations/store-operations.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { BASE, CHANGE, CREATE, OPERATIONS, READ } from './access.ts'
import { EventStreams, eventStream, STREAM_TIMEOUT_MS } from './event-stream.ts'
import { flag, idParameter } from './operations-schemas.ts'
import { portalFileRoute } from './portal-file.ts'
import { present } from './present.ts'

const place = { brokerId: idParameter.optional(), registrationId: idParameter.optional() }
const brokerParams = z.strictObject({ brokerId: idParameter })

const planQuery = z.strictObject({ ...place, allowDisruptive: flag.default(false) })
const reconcileBody = z.strictObject({ ...place, allowDisruptive: z.boolean().default(false) }).nullish()
const reapplyBody = z.strictObject({ ...place, consumerKey: idParameter.optional() })
const verifyBody = z.strictObject({ ...place, protocol: z.enum(PROTOCOLS).optional() }).nullish()
const orphansBody = z.union([
  z.strictObject({ all: z.literal(true) }),
  z.strictObject({ kind: z.enum(OBJECT_KINDS), name: z.string().min(1).max(512) }),
])

interface StreamsParts {
  readonly operations: (request: FastifyRequest) => Operations
  readonly streams: EventStreams
}

/**
 * The same work as the routes without `/stream`, done while the caller waits and told of as it goes: what the command
 * line prints. The leases and pauses of workers hold here, too.
 */
export async function streamRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db, engine, now, sealer, random } = dependencies
  const streams = new EventStreams()
  app.addHook('preClose', () => streams.stop())
  const operations = ({ principal }: FastifyRequest): Operations => {
    const { accountId, kind, tokenId, userId, userName } = principal
    const who = { kind, id: tokenId ?? userId, name: userName }
    return new StoreOperations({ db, engine, now, sealer, random, accountId, who })
  }
  readRoutes(app, { operations, streams })
  runRoutes(app, { operations, streams })
  orphanRoutes(app, { operations, streams })
  portalFileRoute(app, { dependencies, operations, streams })
}

const handlerTimeout = STREAM_TIMEOUT_MS

function readRoutes(app: App, { operations, streams }: StreamsParts): void {
  app.get(
    `${BASE}/plan/stream`,
    {
      config: { access: READ },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'What a run would do now, all of it, as it is found',
        querystring: planQuery,
        response: eventStream('Plans of registrations with something to do.'),
      },
    },
    (request, reply) =>
      streams.send(request, reply, (signal) => operations(request).plans(present(request.query), signal)),
  )
  app.get(
    `${BASE}/orphans/stream`,
    {
      config: { access: READ },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Broker objects that look like those of Keymesh and are not in its ledger',
        querystring: z.strictObject({ brokerId: idParameter.optional() }),
        response: eventStream('The objects.'),
      },
    },
    (request, reply) =>
      streams.send(request, reply, (signal) => operations(request).orphans(request.query.brokerId, signal)),
  )
}

function runRoutes(app: App, { operations, streams }: StreamsParts): void {
  app.post(
    `${BASE}/reconcile/stream`,
    {
      config: { access: CHANGE, audit: 'reconcile' },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Make the brokers match now, and say how it goes',
        body: reconcileBody,
        response: eventStream('Progress, and what each run came to.'),
      },
    },
    (request, reply) => {
      const asked = present(request.body ?? {})
      request.auditSubject = subjectOf(asked)
      return streams.send(request, reply, (signal) => operations(request).reconcile(asked, signal))
    },
  )
  app.post(
    `${BASE}/reapply/stream`,
    {
      config: { access: CHANGE, audit: 'reapply' },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Write stored passwords to the brokers again, and say how it goes',
        body: reapplyBody,
        response: eventStream('What each run came to.'),
      },
    },
    (request, reply) => {
      const asked = present(request.body)
      request.auditSubject = asked.registrationId ?? asked.consumerKey ?? ''
      return streams.send(request, reply, (signal) => operations(request).reapply(asked, signal))
    },
  )
  app.post(
    `${BASE}/brokers/:brokerId/confirmWithdrawals/stream`,
    {
      config: { access: CHANGE, audit: 'withdrawals.confirm' },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Accept the withdrawals that were refused on a broker, run them, and say how it goes',
        params: brokerParams,
        response: eventStream('What each run came to.'),
      },
    },
    (request, reply) => {
      const { brokerId } = request.params
      return streams.send(request, reply, (signal) => operations(request).confirmWithdrawals(brokerId, signal))
    },
  )
  app.post(
    `${BASE}/verify/stream`,
    {
      config: { access: CHANGE, audit: 'verify' },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Log in now with every credential that a broker has confirmed, and say what each login came to',
        body: verifyBody,
        response: eventStream('Logins and tries with a wrong password.'),
      },
    },
    (request, reply) => {
      const asked = present(request.body ?? {})
      request.auditSubject = subjectOf(asked)
      return streams.send(request, reply, (signal) => operations(request).verify(asked, signal))
    },
  )
}

function orphanRoutes(app: App, { operations, streams }: StreamsParts): void {
  app.post(
    `${BASE}/brokers/:brokerId/orphans/delete/stream`,
    {
      config: { access: CREATE, audit: 'orphans.delete' },
      handlerTimeout,
      schema: {
        tags: OPERATIONS,
        summary: 'Delete broker objects that look like those of Keymesh and are not in its ledger',
        description: 'Another Keymesh on the same message VPN may need them: its clients lose what is deleted.',
        params: brokerParams,
        body: orphansBody,
        response: eventStream('What was deleted and what is left.'),
      },
    },
    (request, reply) => {
      const { params, body } = request
      const only = 'all' in body ? null : body
      request.auditSubject = `${only === null ? 'all' : `${only.kind} ${only.name}`} on ${params.brokerId}`
      const deletion = { brokerId: params.brokerId, only }
      return streams.send(request, reply, (signal) => operations(request).deleteOrphans(deletion, signal))
    },
  )
}

const subjectOf = ({
  brokerId,
  registrationId,
}: {
  readonly brokerId?: string
  readonly registrationId?: string
}): string => [registrationId, brokerId].filter((id) => id !== undefined).join(' on ') || 'all brokers'
