import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { PortalSource } from '../../domain/portal-file.ts'
import { Secret } from '../../domain/secret.ts'
import type { Operations } from '../../operations/operations.ts'
import type { ImportEvent } from '../../operations/portal-import.ts'
import { readPortalAgain } from '../../portal-file/read-portal.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { BASE, IMPORT, OPERATIONS } from './access.ts'
import { enqueueRaised } from './enqueueing.ts'
import { type EventStreams, eventStream, STREAM_TIMEOUT_MS } from './event-stream.ts'

/** What a portal file may be with everything that it names, and how much longer JSON may make it. */
const BODY_LIMIT_BYTES = 64 * 1024 * 1024

const path = z.string().min(1).max(4096)
const importBody = z.strictObject({
  path: path.describe('Of the portal file, as problems name it. No path is looked up on the host of the service.'),
  texts: z.record(path, z.string()).describe('The portal file and each file that it names, by path.'),
  realPaths: z.record(path, path).describe('Of each AsyncAPI document and what it refers to, without links.'),
  secrets: z.record(z.string(), z.string()).describe('Of each environment variable that the portal file names.'),
  dryRun: z.boolean().default(false).describe('Say what would change, and write nothing.'),
  prune: z.boolean().default(false).describe('Also remove what the file does not hold.'),
  confirmedDeletions: z.int().min(0).optional().describe('Agree to a prune that removes much: how much.'),
})

interface PortalFileParts {
  readonly dependencies: HttpDependencies
  readonly operations: (request: FastifyRequest) => Operations
  readonly streams: EventStreams
}

export function portalFileRoute(app: App, { dependencies, operations, streams }: PortalFileParts): void {
  app.post(
    `${BASE}/portalFile/stream`,
    {
      config: { access: IMPORT, audit: 'portal-file.import' },
      bodyLimit: BODY_LIMIT_BYTES,
      handlerTimeout: STREAM_TIMEOUT_MS,
      schema: {
        tags: OPERATIONS,
        summary: 'Bring the catalogue and its registrations in step with a portal file',
        description: 'All or nothing, as `keymesh import` does. Registrations that the change reaches are reconciled.',
        body: importBody,
        response: eventStream('Progress, and at last the changes.'),
      },
    },
    (request, reply) => {
      const { principal, body } = request
      const { dryRun, prune, confirmedDeletions } = body
      request.auditSubject = `${body.path}${dryRun ? ', dry run' : ''}${prune ? ', prune' : ''}`
      const imported = async function* (signal: AbortSignal): AsyncIterable<ImportEvent> {
        yield { type: 'progress', phase: 'comparing' }
        const portal = await readPortalAgain(sourceOf(body))
        const asked = { portal, dryRun, prune, ...(confirmedDeletions !== undefined && { confirmedDeletions }) }
        for await (const event of operations(request).importPortal(asked, signal)) {
          if (event.type === 'done') await enqueueRaised(dependencies, principal.accountId, event.raised)
          yield event
        }
      }
      return streams.send(request, reply, imported)
    },
  )
}

const sourceOf = ({ path, texts, realPaths, secrets }: z.output<typeof importBody>): PortalSource => ({
  path,
  texts: new Map(Object.entries(texts)),
  realPaths: new Map(Object.entries(realPaths)),
  secrets: new Map(Object.entries(secrets).map(([name, value]) => [name, new Secret(value)])),
})
