import { accessRequestId, productId } from '../../src/domain/ids.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { until } from '../helpers/service.ts'
import { accessRequest, registration, suppliedCredential } from '../integration/import-fixtures.ts'
import { type Called, type CrashWorld, productOf } from './crash-world.ts'

/**
 * What a client asks for over the API:
 * `create`: a registration, its credential, then access; `first`: the credential of a registration that waits for one;
 * `second`: one more credential; `rotate`: another secret; `end`: one credential of two; `leave`: the registration.
 */
export type Operation = 'create' | 'first' | 'second' | 'rotate' | 'end' | 'leave'
export type Changing = Exclude<Operation, 'create'>

/** What each writes on a broker, in order as far as there is one. */
export const WRITES = { create: 6, second: 1, rotate: 1, end: 2, leave: 4 } as const

export interface Row {
  /** The test's name. */
  readonly killed: string
  readonly operation: Operation
  readonly id: string
  readonly broker: number
}

/** A type and a length come before the text of a statement without values. */
export const COMMIT = /^Q[\s\S]{4}commit/

export const mainKey = (id: string): string => `main-of-${id}`
export const otherKey = (id: string): string => `other-of-${id}`
const firstSecret = (key: string): string => `first-secret-${key}`
export const NEXT_SECRET = 'the-next-secret-Qx72'

/** A registration as it is before the operation; `create` has none. */
export function before({ id, operation, broker }: Row): PortalRegistration[] {
  if (operation === 'create') return []
  const keys = operation === 'first' ? [] : operation === 'end' ? [mainKey(id), otherKey(id)] : [mainKey(id)]
  return [
    registration(id, {
      accessRequests: [accessRequest({ id: accessRequestId('request-1'), productId: productId(productOf(broker)) })],
      credentials: keys.map((key) => suppliedCredential(key, key, firstSecret(key))),
    }),
  ]
}

/** Everything that is there before, at work. */
export async function prepare(world: CrashWorld, rows: readonly Row[]): Promise<void> {
  const { mesh } = world
  await mesh.import({ registrations: rows.flatMap(before) })
  const ready = rows.filter(({ operation }) => operation !== 'create' && operation !== 'first')
  await Promise.all(
    ready.map(({ id, broker }) => mesh.context.engine.reconcilePair(mesh.pair(id, broker), { trigger: 'on-demand' })),
  )
  for (const { requests } of mesh.sandbox.brokers) {
    requests.reset()
    requests.keepLog(1_000)
  }
}

/** What the client asks for; the answer of the last call. */
export async function ask(world: CrashWorld, { id, operation, broker }: Row): Promise<Called> {
  switch (operation) {
    case 'create':
      await world.call('POST', '', { registrationId: id, source: 'portal', name: id })
      await world.call('POST', `/${id}/credentials`, { name: 'main', secret: { consumerKey: mainKey(id) } })
      return world.call('POST', `/${id}/accessRequests`, {
        accessRequestId: 'request-1',
        eventApiProductId: productOf(broker),
        planId: 'gold',
      })
    case 'first':
      return world.call('POST', `/${id}/credentials`, { name: 'main', secret: { consumerKey: mainKey(id) } })
    case 'second':
      return world.call('POST', `/${id}/credentials`, { name: 'other', secret: { consumerKey: otherKey(id) } })
    case 'rotate': {
      const secret = { consumerKey: mainKey(id), consumerSecret: NEXT_SECRET }
      return world.call('PATCH', `/${id}/credentials/${mainKey(id)}`, { secret })
    }
    case 'end':
      return world.call('DELETE', `/${id}/credentials/${otherKey(id)}`)
    case 'leave':
      return world.call('DELETE', `/${id}`)
    default:
      return operation satisfies never
  }
}

/** Consumer keys that are live once the operation is in effect; null when the registration is gone. */
export function keysAfter({ id, operation }: Row): readonly string[] | null {
  switch (operation) {
    case 'create':
    case 'first':
    case 'rotate':
    case 'end':
      return [mainKey(id)]
    case 'second':
      return [mainKey(id), otherKey(id)]
    case 'leave':
      return null
    default:
      return operation satisfies never
  }
}

/** Resolves when each of them is stopped where it should be. */
export async function allStopped(
  stops: readonly { readonly row: Row; readonly isReached: () => boolean }[],
): Promise<void> {
  const missing = () => stops.filter(({ isReached }) => !isReached()).map(({ row }) => row.killed)
  try {
    await until('everything is stopped', () => (missing().length === 0 ? true : null))
  } catch (error) {
    throw new Error(`${String(error)}; not stopped:\n${missing().join('\n')}`)
  }
}
