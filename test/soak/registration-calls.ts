import { PLANS, REGION, REGIONS } from './catalogue.ts'
import type { Access, Change } from './life-facts.ts'
import { pick } from './steps.ts'
import type { Call, Calls, FoundCredential, Targets } from './targets.ts'

const REGISTRATIONS = '/api/v2/apim/appRegistrations'

const pathOf = (registration: string): string => `${REGISTRATIONS}/${registration}`

/** With access and a credential at once. */
export function join(targets: Targets): Calls {
  const id = `app-${targets.number}`
  const created: Call = {
    method: 'POST',
    path: REGISTRATIONS,
    body: { registrationId: id, source: 'soak', name: `Application ${targets.number}` },
    change: { type: 'registration', registration: id },
  }
  const access = newRequest(targets, id)
  return (
    access && [created, access, newCredential(targets, { registration: id, key: `${id}-first`, expiresAtMs: null })]
  )
}

export function leave(targets: Targets): Calls {
  const registration = targets.registration()
  if (registration === null) return null
  const change: Change = { type: 'registration-gone', registration: registration.id }
  return [{ method: 'DELETE', path: pathOf(registration.id), change }]
}

export function rename(targets: Targets): Calls {
  const registration = targets.registration()
  if (registration === null) return null
  const body = { name: `Renamed by step ${targets.number}` }
  return [{ method: 'PATCH', path: pathOf(registration.id), body, change: null }]
}

export function filter(targets: Targets): Calls {
  const registration = targets.registration()
  if (registration === null) return null
  const count = 1 + Math.floor(targets.picks[1] * (REGIONS.length - 1))
  const from = Math.floor(targets.picks[2] * REGIONS.length)
  const values = Array.from({ length: count }, (_, index) => REGIONS[(from + index) % REGIONS.length] ?? 'eu').sort()
  const change: Change = { type: 'regions', registration: registration.id, regions: values }
  const path = `${pathOf(registration.id)}/filters`
  return registration.regions === null
    ? [{ method: 'POST', path, body: { name: REGION, values }, change }]
    : [{ method: 'PATCH', path: `${path}/${REGION}`, body: { values }, change }]
}

export function unfilter(targets: Targets): Calls {
  const registration = targets.registration(({ regions }) => regions !== null)
  if (registration === null) return null
  const change: Change = { type: 'regions', registration: registration.id, regions: null }
  return [{ method: 'DELETE', path: `${pathOf(registration.id)}/filters/${REGION}`, change }]
}

const MOST_REQUESTS = 4
const MOST_CREDENTIALS = 5

export function request(targets: Targets): Calls {
  const registration = targets.registration(({ access }) => access.size < MOST_REQUESTS)
  const call = registration && newRequest(targets, registration.id)
  return call && [call]
}

function newRequest({ life, number, picks }: Targets, registration: string): Call | null {
  const product = pick([...life.products.keys()], picks[1])
  const version = life.shownVersion(product)
  const content = version === null ? undefined : life.products.get(product)?.get(version)
  if (version === null || content === undefined) return null
  const id = `request-${number}`
  const plan = pick(PLANS, picks[3])
  const state = content.approval === 'automatic' ? 'APPROVED' : 'PENDING_APPROVAL'
  return {
    method: 'POST',
    path: `${pathOf(registration)}/accessRequests`,
    body: { accessRequestId: id, eventApiProductId: product, planId: plan },
    change: { type: 'access', registration, id, access: { product, version, plan, state } },
  }
}

/** An administrator's word, or the withdrawal of one who has access. */
export const decide = (targets: Targets): Calls =>
  newState(targets, ({ state }) => state === 'PENDING_APPROVAL', targets.picks[3] < 0.8 ? 'APPROVED' : 'REJECTED')
export const revoke = (targets: Targets): Calls => newState(targets, ({ state }) => state === 'APPROVED', 'REVOKED')
export const askAgain = (targets: Targets): Calls =>
  newState(targets, ({ state }) => state === 'REVOKED' || state === 'REJECTED', 'APPROVED')

function newState(targets: Targets, from: (access: Access) => boolean, state: Access['state']): Calls {
  const found = targets.request(from)
  if (found === null) return null
  const { registration, id, access } = found
  const change: Change = { type: 'access', registration, id, access: { ...access, state } }
  return [{ method: 'PATCH', path: `${pathOf(registration)}/accessRequests/${id}`, body: { state }, change }]
}

export function dropRequest(targets: Targets): Calls {
  const found = targets.request()
  if (found === null) return null
  const { registration, id } = found
  const change: Change = { type: 'access-gone', registration, id }
  return [{ method: 'DELETE', path: `${pathOf(registration)}/accessRequests/${id}`, change }]
}

export const addCredential = (targets: Targets): Calls => oneMore(targets, null)

function oneMore(targets: Targets, expiresAtMs: number | null): Calls {
  const found = targets.registration(({ credentials }) => credentials.size < MOST_CREDENTIALS)
  const key = `${found?.id}-${targets.number}`
  return found && [newCredential(targets, { registration: found.id, key, expiresAtMs })]
}

export function newCredential(
  targets: Targets,
  { registration, key, expiresAtMs }: Omit<FoundCredential, 'secret'>,
): Call {
  const secret = targets.newSecret()
  const body = {
    name: `by step ${targets.number}`,
    secret: { consumerKey: key, consumerSecret: secret },
    expiresAt: expiresAtMs ?? -1,
  }
  const change: Change = { type: 'credential', registration, key, secret, expiresAtMs }
  return { method: 'POST', path: `${pathOf(registration)}/credentials`, body, change }
}

export function rotate(targets: Targets): Calls {
  const found = targets.credential()
  if (found === null) return null
  const { registration, key, expiresAtMs } = found
  const secret = targets.newSecret()
  const change: Change = { type: 'credential', registration, key, secret, expiresAtMs }
  const body = { secret: { consumerKey: key, consumerSecret: secret } }
  return [{ method: 'PATCH', path: `${pathOf(registration)}/credentials/${key}`, body, change }]
}

export function endCredential(targets: Targets): Calls {
  const found = targets.credential()
  return found && [endOf(found)]
}

export function reuseKey(targets: Targets): Calls {
  const found = targets.credential()
  return found && [endOf(found), newCredential(targets, { ...found, expiresAtMs: null })]
}

const endOf = ({ registration, key }: FoundCredential): Call => ({
  method: 'DELETE',
  path: `${pathOf(registration)}/credentials/${key}`,
  change: { type: 'credential-gone', registration, key },
})

export function expire(targets: Targets): Calls {
  const { settings, picks } = targets
  const [shortest, longest] = settings.expiresInMs
  const expiresAtMs = Math.round(settings.wallMs + shortest + picks[2] * (longest - shortest))
  if (picks[3] < 0.3) return oneMore(targets, expiresAtMs)
  const found = targets.credential()
  if (found === null) return null
  const { registration, key, secret } = found
  const change: Change = { type: 'credential', registration, key, secret, expiresAtMs }
  const path = `${pathOf(registration)}/credentials/${key}`
  return [{ method: 'PATCH', path, body: { expiresAt: expiresAtMs }, change }]
}
