import { notFound } from '../domain/refusals.ts'
import { requireRequest } from './access-requests.ts'
import { grantedRequest, readRequests, readVersionsOf, type StoredRequest } from './access-requests-view.ts'
import type { Database } from './database.ts'
import { type EventApiSource, findEventApiSource } from './product-view.ts'
import { eventApisOf } from './registration-view.ts'
import type { EventApiView, VersionViews } from './registration-view-versions.ts'
import { findRegistration, type RegistrationPlace } from './registrations-change.ts'

/** Event APIs of one access request, or of all that a registration has not lost. */
export interface EventApisPlace extends RegistrationPlace {
  readonly accessRequestId: string | null
}

interface Found {
  readonly requests: readonly StoredRequest[]
  readonly versions: VersionViews
  readonly eventApis: readonly EventApiView[]
}

async function find(db: Database, place: EventApisPlace): Promise<Found> {
  const { accountId, registrationId, accessRequestId } = place
  await findRegistration(db, place)
  const requests =
    accessRequestId === null
      ? await readRequests(db, accountId, [registrationId])
      : [await requireRequest(db, { ...place, accessRequestId })]
  const versions = await readVersionsOf(db, accountId, requests)
  if (accessRequestId === null) return { requests, versions, eventApis: eventApisOf(requests, versions) }
  const found = requests.flatMap(
    ({ productId, productVersion }) => versions({ productId, version: productVersion })?.eventApis ?? [],
  )
  return { requests, versions, eventApis: found }
}

/** Throws NOT_FOUND. */
export async function listEventApis(db: Database, place: EventApisPlace): Promise<readonly EventApiView[]> {
  return (await find(db, place)).eventApis
}

export interface FoundEventApi {
  readonly productId: string
  readonly source: EventApiSource
}

/**
 * Where several access requests have the Event API, one that is granted comes before one that is not. Throws NOT_FOUND.
 */
export async function findEventApi(db: Database, place: EventApisPlace, eventApiId: string): Promise<FoundEventApi> {
  const { requests, versions, eventApis } = await find(db, place)
  const listed = new Set(eventApis)
  const having = requests.filter(({ productId, productVersion }) =>
    versions({ productId, version: productVersion })?.eventApis.some(
      (each) => each.id === eventApiId && listed.has(each),
    ),
  )
  const request = having.find((each) => grantedRequest(each, versions) !== null) ?? having[0]
  if (request === undefined) throw notFound('Event API', eventApiId)
  const { productId, planId, productVersion } = request
  const source = await findEventApiSource(
    db,
    { accountId: place.accountId, productId, planId, eventApiId },
    productVersion,
  )
  if (source === null) throw notFound('Event API', eventApiId)
  return { productId, source }
}
