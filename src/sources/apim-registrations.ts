import { z } from 'zod'
import { accessRequestId, consumerKey, productId, registrationId } from '../domain/ids.ts'
import { clientUsernameProblem, hasUnsafeCharacters } from '../domain/names.ts'
import type { PortalAccessRequest, PortalCredential, PortalRegistration } from '../domain/portal-file.ts'
import { Secret } from '../domain/secret.ts'
import { SEMANTIC_VERSION } from '../domain/semantic-version.ts'
import { attributes, catalogueId, expiry, externalId, filters, list, state, text } from './apim-fields.ts'
import { fieldOf } from './apim-products.ts'
import type { Findings } from './findings.ts'

const identified = z.object({ registrationId: externalId })
const fields = z.object({
  name: text(1000),
  source: text(188),
  sourceOwner: text(1000),
  applicationDomainId: text(188),
  filters,
  attributes,
  accessRequests: list,
  credentials: list,
})

/** A registration and the parts that came with it; null: they did not, and are to be asked for. */
export interface ListedRegistration {
  readonly registration: Omit<PortalRegistration, 'accessRequests' | 'credentials'>
  readonly accessRequests: readonly unknown[] | null
  readonly credentials: readonly unknown[] | null
}

const NO_DOMAIN = 'none'

/** `listed` is null when it has to be left out, which the findings say; `id` when not even that can be used. */
export interface RegistrationReading {
  readonly id: string | null
  readonly listed: ListedRegistration | null
}

export function readRegistration(item: unknown, findings: Findings): RegistrationReading {
  const id = identified.safeParse(item).data?.registrationId
  if (id === undefined) {
    findings.warn('A registration without a usable registrationId was left out.')
    return { id: null, listed: null }
  }
  const parsed = fields.safeParse(item)
  if (!parsed.success) {
    const warning = `Registration ${id} has no usable ${fieldOf(parsed.error)}; it stays as stored.`
    findings.leave({ kind: 'registration', id }, warning)
    return { id, listed: null }
  }
  const { name, source, sourceOwner, applicationDomainId: domain, accessRequests, credentials, ...rest } = parsed.data
  const registration = {
    id: registrationId(id),
    name: name === '' ? id : name,
    source: source === '' ? 'remote' : source,
    sourceOwner: sourceOwner === '' ? null : sourceOwner,
    applicationDomainId: domain === NO_DOMAIN || !catalogueId.safeParse(domain).success ? null : domain,
    ...rest,
  }
  return { id, listed: { registration, accessRequests: accessRequests ?? null, credentials: credentials ?? null } }
}

const accessRequest = z.object({
  accessRequestId: externalId,
})
const accessRequestFields = z.object({
  eventApiProductId: catalogueId,
  eventApiProductVersion: z.string().regex(SEMANTIC_VERSION),
  planId: catalogueId,
  state,
  filters,
})

/** What the remote's word means here; null: it says nothing of the approval, which stays as it is. */
const STATES: Readonly<Record<string, PortalAccessRequest['state']>> = {
  APPROVED: 'APPROVED',
  LIVE: 'APPROVED',
  PENDING_APPROVAL: 'PENDING_APPROVAL',
  AWAITING_APPROVAL: 'PENDING_APPROVAL',
  REJECTED: 'REJECTED',
  REVOKED: 'REVOKED',
  // Brokers of the remote have a problem; ours may not.
  ERROR: null,
}

export function readAccessRequests(
  items: readonly unknown[],
  registration: string,
  findings: Findings,
): readonly PortalAccessRequest[] {
  const byId = new Map<string, PortalAccessRequest>()
  for (const item of items) {
    const id = accessRequest.safeParse(item).data?.accessRequestId
    if (id === undefined) {
      findings.leave(
        { kind: 'registration', id: registration },
        `Registration ${registration} has an access request without a usable id; it stays as stored.`,
      )
      continue
    }
    const parsed = accessRequestFields.safeParse(item)
    const isKnown = parsed.success && Object.hasOwn(STATES, parsed.data.state)
    if (!parsed.success || !isKnown) {
      const why = parsed.success ? 'is in an unknown state' : `has no usable ${fieldOf(parsed.error)}`
      const unread = { kind: 'accessRequest', registrationId: registration, id } as const
      findings.leave(unread, `Access request ${id} of registration ${registration} ${why}; it stays as stored.`)
      continue
    }
    const { data } = parsed
    byId.set(id, {
      id: accessRequestId(id),
      productId: productId(data.eventApiProductId),
      productVersion: data.eventApiProductVersion,
      productVersionIsDefault: false,
      planId: data.planId,
      filters: data.filters,
      state: STATES[data.state] ?? null,
      expiresAtMs: null,
    })
  }
  return [...byId.values()]
}

const credentialKey = z.object({
  secret: z.object({ consumerKey: z.string().refine((key) => clientUsernameProblem(key) === null) }),
})
/** A client password as a broker takes it, SEMP v2 configuration description. */
const consumerSecret = z
  .string()
  .min(1)
  .max(128)
  .refine((secret) => !hasUnsafeCharacters(secret))
const credentialFields = z.object({
  name: text(1000),
  expiresAt: expiry,
  secret: z.object({ consumerSecret }),
})

/** Ordered by consumer key, so that names which come twice are told apart the same way each time. */
export function readCredentials(
  items: readonly unknown[],
  registration: string,
  findings: Findings,
): readonly PortalCredential[] {
  const byKey = new Map<string, Omit<PortalCredential, 'consumerKey'>>()
  for (const item of items) {
    const key = credentialKey.safeParse(item).data?.secret.consumerKey
    if (key === undefined) {
      findings.leave(
        { kind: 'registration', id: registration },
        `Registration ${registration} has a credential without a usable consumer key; it stays as stored.`,
      )
      continue
    }
    const parsed = credentialFields.safeParse(item)
    if (!parsed.success) {
      const unread = { kind: 'credential', registrationId: registration, consumerKey: key } as const
      findings.leave(
        unread,
        `Credential ${key} of registration ${registration} has no usable ${fieldOf(parsed.error)}; it stays as stored.`,
      )
      continue
    }
    const { name, expiresAt, secret } = parsed.data
    byKey.set(key, {
      name: name === '' ? key : name,
      consumerSecret: new Secret(secret.consumerSecret),
      expiresAtMs: expiresAt,
    })
  }
  const inOrder = [...byKey].sort(([one], [other]) => (one < other ? -1 : 1))
  const names = new Set<string>()
  return inOrder.map(([key, credential]) => {
    const name = names.has(credential.name) ? `${credential.name} (${key})` : credential.name
    names.add(name)
    return { ...credential, name, consumerKey: consumerKey(key) }
  })
}
