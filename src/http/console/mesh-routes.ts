import { z } from 'zod'
import { isAdministrator } from '../../domain/permissions.ts'
import { notFound } from '../../domain/refusals.ts'
import { readMesh } from '../../store/mesh-view.ts'
import { readPairs } from '../../store/pairs-view.ts'
import { readAccessRequestQueue } from '../../store/portal-access-requests.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { pauseScope, resumeScope } from '../operations/pause-requests.ts'
import { CHANGE, CONSOLE, HIDDEN, LOOK } from './access.ts'
import { brokerPage } from './broker-page.ts'
import { createFleetReader, type FleetReader } from './fleet-figures.ts'
import { figuresOf, meshPage } from './mesh-page.ts'
import { leaveNotice } from './notices.ts'
import { resumedNotice } from './pause-notice.ts'
import { brokerPath } from './record-parts.ts'
import { seeOther, sendPage } from './send-page.ts'

const ASTRAY_SHOWN = 20
const NONE = { limit: 0, offset: 0 }

const brokerParams = z.object({ brokerId: z.string().min(1).max(256) })

/** The mesh, each broker of it, and what can be done there. */
export async function meshPages(console: App, dependencies: HttpDependencies): Promise<void> {
  const fleet = createFleetReader(dependencies)
  console.addHook('onClose', () => fleet.idle())
  lookingRoutes(console, dependencies, fleet)
  accountActions(console, dependencies)
  brokerActions(console, dependencies)
}

function lookingRoutes(console: App, { db, now }: HttpDependencies, fleet: FleetReader): void {
  console.get('/', { config: { access: LOOK }, schema: HIDDEN }, async (request, reply) => {
    const { accountId, roles } = request.principal
    const [mesh, figures, waiting] = await Promise.all([
      readMesh(db, accountId),
      fleet.read(accountId),
      readAccessRequestQueue(db, { accountId, state: 'PENDING_APPROVAL' }, NONE),
    ])
    const seen = { nowMs: now(), isAdministrator: isAdministrator(roles) }
    return await sendPage(request, reply, meshPage({ mesh, figures, waiting: waiting.count, ...seen }))
  })
  console.get(
    '/brokers/:brokerId',
    { config: { access: LOOK }, schema: { ...HIDDEN, params: brokerParams } },
    async (request, reply) => {
      const { accountId, roles } = request.principal
      const { brokerId } = request.params
      const mesh = await readMesh(db, accountId)
      const { broker, place } = placeOf(mesh, brokerId)
      if (broker === undefined) throw notFound('broker', brokerId)
      const page = { limit: ASTRAY_SHOWN, offset: 0 }
      const [figures, astray] = await Promise.all([
        fleet.read(accountId),
        readPairs(db, { accountId, brokerId, astrayOnly: true }, page),
      ])
      const seen = { nowMs: now(), isAdministrator: isAdministrator(roles) }
      const shown = { figures: figuresOf({ mesh, figures }, broker), place, astray, ...seen }
      return await sendPage(request, reply, brokerPage(shown))
    },
  )
}

function placeOf({ environments, unplaced }: Awaited<ReturnType<typeof readMesh>>, id: string) {
  for (const environment of environments) {
    for (const mesh of environment.eventMeshes) {
      const broker = mesh.brokers.find(({ brokerId }) => brokerId === id)
      if (broker !== undefined) {
        return { broker, place: `In event mesh ${mesh.name} of environment ${environment.name}` }
      }
    }
  }
  return { broker: unplaced.find(({ brokerId }) => brokerId === id), place: null }
}

/** Asking for runs is a form of `/plan/reconcile`, wherever it stands. */
function accountActions(console: App, dependencies: HttpDependencies): void {
  console.post('/pause', { config: { access: CHANGE, audit: 'pause' }, schema: HIDDEN }, async (request, reply) => {
    const { accountId, userName } = request.principal
    await pauseScope(dependencies, { accountId, scope: 'account' }, userName)
    leaveNotice(request, reply, { tone: 'good', text: 'Everything is paused. What runs ends; nothing else begins.' })
    return seeOther(reply, CONSOLE)
  })
  console.post('/resume', { config: { access: CHANGE, audit: 'resume' }, schema: HIDDEN }, async (request, reply) => {
    const { accountId } = request.principal
    leaveNotice(request, reply, resumedNotice(await resumeScope(dependencies, { accountId, scope: 'account' })))
    return seeOther(reply, CONSOLE)
  })
}

function brokerActions(console: App, dependencies: HttpDependencies): void {
  const schema = { ...HIDDEN, params: brokerParams }
  console.post(
    '/brokers/:brokerId/pause',
    { config: { access: CHANGE, audit: 'broker.pause' }, schema },
    async (request, reply) => {
      const { accountId, userName } = request.principal
      const { brokerId } = request.params
      await pauseScope(dependencies, { accountId, scope: 'broker', id: brokerId }, userName)
      leaveNotice(request, reply, { tone: 'good', text: 'The broker is paused. What runs ends; nothing else begins.' })
      return seeOther(reply, brokerPath(brokerId))
    },
  )
  console.post(
    '/brokers/:brokerId/resume',
    { config: { access: CHANGE, audit: 'broker.resume' }, schema },
    async (request, reply) => {
      const { brokerId } = request.params
      const target = { accountId: request.principal.accountId, scope: 'broker', id: brokerId } as const
      leaveNotice(request, reply, resumedNotice(await resumeScope(dependencies, target)))
      return seeOther(reply, brokerPath(brokerId))
    },
  )
}
