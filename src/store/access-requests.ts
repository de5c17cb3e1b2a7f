import { forbidden, notFound } from '../domain/refusals.ts'
import type { AccessRequestState } from '../domain/registration.ts'
import { refuseNewProblems, topicProblems } from './access-requests-topics.ts'
import {
  type AccessRequestView,
  accessRequestView,
  findRequest,
  grantedRequest,
  readRequests,
  readVersionsOf,
  requestRevision,
  type StoredRequest,
} from './access-requests-view.ts'
import type { Database } from './database.ts'
import { isCounted } from './import-state.ts'
import { deleteAccessRequests, writeAccessRequests } from './import-write-registrations.ts'
import type { RandomSource } from './random-source.ts'
import {
  type Changed,
  changeRegistration,
  type RegistrationPlace,
  type RevisionCheck,
  refused,
  type StoredRegistration,
} from './registrations-change.ts'

/** As many as one answer can hold. */
export const MAX_ACCESS_REQUESTS = 999

export interface AccessRequestPlace extends RegistrationPlace {
  readonly accessRequestId: string
}

export interface AccessRequestWriter {
  readonly db: Database
  readonly random: RandomSource
  readonly nowMs: number
  readonly maxTopics: number
}

export interface AccessRequestAnswer {
  readonly view: AccessRequestView
  readonly revision: string
}

/**
 * For the version of the product that is shown now; it stays the request's. Throws NOT_FOUND for the registration,
 * InvalidInputError for an id that is taken, a product that is not visible, a plan that it does not
 * have, or topics that no broker takes.
 */
export function createAccessRequest(
  writer: AccessRequestWriter,
  place: AccessRequestPlace,
  wanted: { readonly productId: string; readonly planId: string },
): Promise<Changed<AccessRequestAnswer>> {
  const { accountId, registrationId, accessRequestId: id } = place
  return changeRegistration(writer.db, place, async (trx, registration) => {
    const requests = await readRequests(trx, accountId, [registrationId])
    if (requests.some((each) => each.id === id))
      throw refused('accessRequestId', 'is not unique: the registration has an access request of this id')
    if (requests.length >= MAX_ACCESS_REQUESTS) {
      throw refused(
        'request',
        `the registration has ${MAX_ACCESS_REQUESTS} access requests, which is the most it can have`,
      )
    }
    const product = await visibleProduct(trx, accountId, wanted)
    const isAutomatic = product.approvalType === 'automatic'
    const request: StoredRequest = {
      registrationId,
      id,
      productId: wanted.productId,
      productVersion: product.version,
      planId: wanted.planId,
      filters: {},
      state: isAutomatic ? 'APPROVED' : 'PENDING_APPROVAL',
      reason: null,
      queueNonce: '',
      approvedAtMs: isAutomatic ? writer.nowMs : null,
      expiresAtMs: null,
      expiredAtMs: null,
    }
    await refuseBadTopics({ ...writer, db: trx }, place, registration, { requests, request })
    await writeAccessRequests(trx, writer.random, accountId, [request])
    return { result: await readAnswer({ ...writer, db: trx }, place, registration), touched: isAutomatic }
  })
}

interface VisibleProduct {
  readonly version: string
  readonly approvalType: 'automatic' | 'manual'
}

async function visibleProduct(
  db: Database,
  accountId: string,
  { productId, planId }: { readonly productId: string; readonly planId: string },
): Promise<VisibleProduct> {
  const row = await db
    .selectFrom('product_documents as d')
    .innerJoin('product_versions as v', (join) =>
      join
        .onRef('v.account_id', '=', 'd.account_id')
        .onRef('v.product_id', '=', 'd.product_id')
        .onRef('v.version', '=', 'd.version'),
    )
    .leftJoin('plans as p', (join) =>
      join
        .onRef('p.account_id', '=', 'd.account_id')
        .onRef('p.product_id', '=', 'd.product_id')
        .onRef('p.version', '=', 'd.version')
        .on('p.id', '=', planId),
    )
    .select(['v.version', 'v.approval_type as approvalType', 'p.id as planId'])
    .where('d.account_id', '=', accountId)
    .where('d.product_id', '=', productId)
    .where('d.listed', '=', true)
    .executeTakeFirst()
  if (row === undefined) throw refused('eventApiProductId', `there is no Event API Product "${productId}"`)
  if (row.planId === null) throw refused('planId', `the Event API Product "${productId}" has no plan "${planId}"`)
  return row
}

/** Also of a request that waits for approval: who asks can still choose something else. */
async function refuseBadTopics(
  { db, maxTopics }: AccessRequestWriter,
  { accountId }: RegistrationPlace,
  { filters }: StoredRegistration,
  { requests, request }: { readonly requests: readonly StoredRequest[]; readonly request: StoredRequest },
): Promise<void> {
  const versions = await readVersionsOf(db, accountId, [...requests, request])
  const granted = requests.flatMap((each) => grantedRequest(each, versions) ?? [])
  const added = grantedRequest({ ...request, state: 'APPROVED' }, versions)
  const before = topicProblems({ filters, maxTopics }, granted)
  const after = topicProblems({ filters, maxTopics }, added === null ? granted : [...granted, added])
  refuseNewProblems('eventApiProductId', before, after)
}

/**
 * Who may decide approves and rejects; everybody may ask again, and withdraw. Throws NOT_FOUND, FORBIDDEN, InvalidInputError
 * for a step that is not legal, or what `check` throws.
 */
export function changeAccessRequestState(
  writer: AccessRequestWriter,
  place: AccessRequestPlace,
  wanted: AccessRequestState | undefined,
  rules: { readonly mayDecide: boolean; readonly check: RevisionCheck },
): Promise<Changed<AccessRequestAnswer>> {
  const { accountId } = place
  return changeRegistration(writer.db, place, async (trx, registration) => {
    const stored = await requireRequest(trx, place)
    rules.check(requestRevision(stored))
    const state = wanted === undefined ? stored.state : nextState(stored, wanted, rules.mayDecide)
    const approvedAtMs = state === 'APPROVED' ? (stored.approvedAtMs ?? writer.nowMs) : null
    const request = state === stored.state ? stored : { ...stored, state, approvedAtMs }
    if (request !== stored) await writeAccessRequests(trx, writer.random, accountId, [request])
    const touched = request !== stored && (isCounted(stored) || isCounted(request))
    return { result: await readAnswer({ ...writer, db: trx }, place, registration), touched }
  })
}

/**
 * | wanted           | from                                                        | by whom       |
 * | APPROVED         | PENDING_APPROVAL, REJECTED, REVOKED; stays LIVE and ERROR   | who decides   |
 * | REJECTED         | PENDING_APPROVAL                                            | who decides   |
 * | REVOKED          | PENDING_APPROVAL, APPROVED, LIVE, ERROR                     | everybody     |
 * | PENDING_APPROVAL | REJECTED, REVOKED                                           | everybody     |
 * | LIVE, ERROR      | nothing: brokers make them so                               | nobody        |
 */
function nextState(stored: StoredRequest, wanted: AccessRequestState, mayDecide: boolean): AccessRequestState {
  if (stored.expiredAtMs !== null)
    throw refused('state', 'cannot be changed: the access request has expired, make another one')
  if (stored.state === wanted) return wanted
  if ((wanted === 'APPROVED' || wanted === 'REJECTED') && !mayDecide) {
    throw forbidden('Only an administrator of the account approves or rejects an access request.')
  }
  const stays = wanted === 'APPROVED' && isCounted(stored)
  if (stays) return stored.state
  if (!LEGAL_FROM[wanted].includes(stored.state)) {
    throw refused('state', `cannot become ${wanted} from ${stored.state}`)
  }
  return wanted
}

const LEGAL_FROM: Readonly<Record<AccessRequestState, readonly AccessRequestState[]>> = {
  APPROVED: ['PENDING_APPROVAL', 'REJECTED', 'REVOKED', 'ERROR'],
  REJECTED: ['PENDING_APPROVAL'],
  REVOKED: ['PENDING_APPROVAL', 'APPROVED', 'LIVE', 'ERROR'],
  PENDING_APPROVAL: ['REJECTED', 'REVOKED'],
  LIVE: [],
  ERROR: [],
}

/** What it has on brokers is withdrawn. Throws NOT_FOUND, or what `check` throws. */
export function deleteAccessRequest(
  db: Database,
  place: AccessRequestPlace,
  check: RevisionCheck,
): Promise<Changed<undefined>> {
  return changeRegistration(db, place, async (trx) => {
    const stored = await requireRequest(trx, place)
    check(requestRevision(stored))
    await deleteAccessRequests(trx, place.accountId, [
      { registrationId: place.registrationId, id: place.accessRequestId },
    ])
    return { result: undefined, touched: isCounted(stored) }
  })
}

/** Throws NOT_FOUND. */
export async function requireRequest(db: Database, place: AccessRequestPlace): Promise<StoredRequest> {
  const request = await findRequest(db, place.accountId, place.registrationId, place.accessRequestId)
  if (request === null) throw notFound('access request', place.accessRequestId)
  return request
}

/** Throws NOT_FOUND. */
export async function readAnswer(
  { db, maxTopics }: Pick<AccessRequestWriter, 'db' | 'maxTopics'>,
  place: AccessRequestPlace,
  { filters }: Pick<StoredRegistration, 'filters'>,
): Promise<AccessRequestAnswer> {
  const request = await requireRequest(db, place)
  const versions = await readVersionsOf(db, place.accountId, [request])
  const owner = { accountId: place.accountId, registrationId: place.registrationId, filters, maxTopics }
  return { view: accessRequestView(owner, request, versions), revision: requestRevision(request) }
}
