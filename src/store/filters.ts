import { notFound } from '../domain/refusals.ts'
import type { Filters } from '../domain/registration.ts'
import { type AccessRequestWriter, requireRequest } from './access-requests.ts'
import { refuseNewProblems, topicProblems } from './access-requests-topics.ts'
import { grantedRequest, readRequests, readVersionsOf, type StoredRequest } from './access-requests-view.ts'
import type { Database } from './database.ts'
import { type FilterView, filterViews } from './filters-view.ts'
import { isCounted } from './import-state.ts'
import { writeAccessRequests } from './import-write-registrations.ts'
import {
  type Changed,
  changeRegistration,
  findRegistration,
  type RegistrationPlace,
  refused,
  type StoredRegistration,
  writeRegistration,
} from './registrations-change.ts'

/** As many as one answer can hold. */
export const MAX_FILTERS = 256

/** Filters of an access request, or of a registration: then of all its requests that do not have their own. */
export interface FilterPlace extends RegistrationPlace {
  readonly accessRequestId: string | null
}

/** Called with what is stored, the registration locked; throws to refuse the change. */
type Check = (stored: FilterView) => void

/** By name. Throws NOT_FOUND. */
export async function listFilters(db: Database, place: FilterPlace): Promise<readonly FilterView[]> {
  const registration = await findRegistration(db, place)
  return filterViews((await subjectOf(db, place, registration)).filters)
}

/** Throws NOT_FOUND. */
export async function findFilter(db: Database, place: FilterPlace, name: string): Promise<FilterView> {
  const found = (await listFilters(db, place)).find((each) => each.name === name)
  if (found === undefined) throw notFound('filter', name)
  return found
}

/** Throws NOT_FOUND, InvalidInputError when the name is taken or the values give topics that no broker takes. */
export function createFilter(
  writer: AccessRequestWriter,
  place: FilterPlace,
  filter: FilterView,
): Promise<Changed<FilterView>> {
  return changeFilters(writer, place, (filters) => {
    if (Object.hasOwn(filters, filter.name)) throw refused('name', 'is not unique: there is a filter of this name')
    if (Object.keys(filters).length >= MAX_FILTERS) {
      throw refused('request', `there are ${MAX_FILTERS} filters, which is the most there can be`)
    }
    return { filters: { ...filters, [filter.name]: filter.values }, result: filter }
  })
}

/** Without values nothing changes. Throws like `createFilter`, or what `check` throws. */
export function updateFilter(
  writer: AccessRequestWriter,
  place: FilterPlace,
  { name, values }: { readonly name: string; readonly values: readonly string[] | undefined },
  check: Check,
): Promise<Changed<FilterView>> {
  return changeFilters(writer, place, (filters) => {
    const stored = storedFilter(filters, name)
    check(stored)
    const result = { name, values: values ?? stored.values }
    return { filters: { ...filters, [name]: result.values }, result }
  })
}

/** Throws NOT_FOUND, InvalidInputError when there are too many topics without the filter, or what `check` throws. */
export function deleteFilter(
  writer: AccessRequestWriter,
  place: FilterPlace,
  name: string,
  check: Check,
): Promise<Changed<undefined>> {
  return changeFilters(writer, place, (filters) => {
    check(storedFilter(filters, name))
    const left = Object.entries(filters).filter(([key]) => key !== name)
    return { filters: Object.fromEntries(left), result: undefined }
  })
}

function storedFilter(filters: Filters, name: string): FilterView {
  const values = Object.hasOwn(filters, name) ? filters[name] : undefined
  if (values === undefined) throw notFound('filter', name)
  return { name, values }
}

/** What has the filters: an access request, or the registration itself. */
type Subject = { readonly filters: Filters; readonly request: StoredRequest | null }

async function subjectOf(db: Database, place: FilterPlace, registration: StoredRegistration): Promise<Subject> {
  if (place.accessRequestId === null) return { filters: registration.filters, request: null }
  const request = await requireRequest(db, { ...place, accessRequestId: place.accessRequestId })
  return { filters: request.filters, request }
}

function changeFilters<Result>(
  writer: AccessRequestWriter,
  place: FilterPlace,
  change: (filters: Filters) => { readonly filters: Filters; readonly result: Result },
): Promise<Changed<Result>> {
  return changeRegistration(writer.db, place, async (trx, registration) => {
    const subject = await subjectOf(trx, place, registration)
    const { filters, result } = change(subject.filters)
    if (JSON.stringify(filterViews(filters)) === JSON.stringify(filterViews(subject.filters))) {
      return { result, touched: false }
    }
    await refuseBadTopics({ ...writer, db: trx }, place, registration, filters)
    if (subject.request === null) {
      await writeRegistration(trx, place, { ...registration, filters })
      return { result, touched: true }
    }
    await writeAccessRequests(trx, writer.random, place.accountId, [{ ...subject.request, filters }])
    return { result, touched: isCounted(subject.request) }
  })
}

async function refuseBadTopics(
  { db, maxTopics }: AccessRequestWriter,
  { accountId, registrationId, accessRequestId }: FilterPlace,
  registration: StoredRegistration,
  filters: Filters,
): Promise<void> {
  const requests = await readRequests(db, accountId, [registrationId])
  const versions = await readVersionsOf(db, accountId, requests)
  const granted = requests.flatMap((request) => grantedRequest(request, versions) ?? [])
  const before = topicProblems({ filters: registration.filters, maxTopics }, granted)
  const after =
    accessRequestId === null
      ? topicProblems({ filters, maxTopics }, granted)
      : topicProblems(
          { filters: registration.filters, maxTopics },
          granted.map((request) => (request.id === accessRequestId ? { ...request, filters } : request)),
        )
  refuseNewProblems('values', before, after)
}
