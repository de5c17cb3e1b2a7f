import type { AccessRequestState } from '../domain/registration.ts'
import { readRequests } from './access-requests-view.ts'
import type { Database } from './database.ts'
import { type LoginView, viewLogins } from './logins-view.ts'
import { type PairView, readPairs } from './pairs-view.ts'

export interface RegistrationExplanation {
  readonly id: string
  readonly name: string
  readonly accessRequests: readonly AccessRequestExplanation[]
  /** Of every broker that it is, was or should be on. */
  readonly brokers: readonly BrokerExplanation[]
}

export interface BrokerExplanation extends Omit<PairView, 'registrationId'> {
  /** Of its credentials, over the broker's protocols. */
  readonly logins: readonly Omit<LoginView, 'brokerId' | 'registrationId'>[]
}

export interface AccessRequestExplanation {
  readonly id: string
  readonly productId: string
  readonly productVersion: string
  readonly state: AccessRequestState
  readonly explanation: string
}

const MAX_BROKERS = 1000
const MAX_LOGINS = 5000

/** Why each access request is in its state, and how the registration stands on brokers; null when there is none. */
export async function explainRegistration(
  db: Database,
  accountId: string,
  registrationId: string,
): Promise<RegistrationExplanation | null> {
  const registration = await db
    .selectFrom('registrations')
    .select(['id', 'name'])
    .where('account_id', '=', accountId)
    .where('id', '=', registrationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  if (registration === undefined) return null
  const requests = await readRequests(db, accountId, [registrationId])
  const { pairs } = await readPairs(db, { accountId, registrationId }, { limit: MAX_BROKERS, offset: 0 })
  const found = await viewLogins(db, { accountId, registrationId }, { limit: MAX_LOGINS, offset: 0 })
  return {
    ...registration,
    accessRequests: requests.map(({ id, productId, productVersion, state, reason, expiredAtMs }) => ({
      id,
      productId,
      productVersion,
      state,
      explanation: expiredAtMs === null ? (reason ?? EXPLANATIONS[state]) : 'Its time is over; make another one.',
    })),
    brokers: pairs.map(({ registrationId: _registration, ...pair }) => ({
      ...pair,
      logins: found.logins
        .filter(({ brokerId }) => brokerId === pair.brokerId)
        .map(({ brokerId: _broker, registrationId: _id, ...login }) => login),
    })),
  }
}

const EXPLANATIONS: Readonly<Record<AccessRequestState, string>> = {
  PENDING_APPROVAL: 'It waits for the decision of an administrator.',
  REJECTED: 'An administrator declined it; it can be asked for again.',
  REVOKED: 'It was withdrawn; it can be asked for again.',
  APPROVED: 'It is LIVE as soon as every broker of the product has it.',
  LIVE: 'It is in effect on every broker of the product.',
  ERROR: 'It cannot be in effect as it is.',
}
