import { z } from 'zod'

/** Facts as the outbox keeps them and as receivers get them. Names and codes only; never a secret. */
const driftSubject = z.strictObject({
  driftId: z.int().describe('Of the difference in the operations API.'),
  brokerId: z.string(),
  registrationId: z.string().nullable().describe('Null: shared by the registrations of the message VPN.'),
  objectKind: z.string(),
  objectName: z.string(),
  difference: z.string().describe('missing, changed, unexpected, conflict, unsuitable or password.'),
  reason: z.string(),
  action: z.string().describe('What came of it so far: reported, repaired, held or failed.'),
  runId: z.string(),
})
const brokerDownSubject = z.strictObject({
  brokerId: z.string(),
  brokerName: z.string().nullable(),
  errorCode: z.string().nullable().describe('Of the last read that failed.'),
  error: z.string().nullable(),
})
const brokerBackSubject = z.strictObject({
  brokerId: z.string(),
  brokerName: z.string().nullable(),
  downSinceMs: z.int().nullable().describe('Epoch milliseconds.'),
})
const expiringSubject = z.strictObject({
  registrationId: z.string(),
  credentialName: z.string(),
  consumerKey: z.string(),
  expiresAtMs: z.int().describe('Epoch milliseconds.'),
})
const waitingSubject = z.strictObject({
  registrationId: z.string(),
  accessRequestId: z.string(),
  productId: z.string(),
  productVersion: z.string(),
  planId: z.string(),
})
const testSubject = z.strictObject({ requestedBy: z.string() })

const fields = {
  id: z.string().describe('The same fact has the same id at every endpoint of the account.'),
  occurredAtMs: z.int().describe('Epoch milliseconds.'),
  summary: z.string().describe('One line for a person.'),
}

export const notificationSchema = z.discriminatedUnion('kind', [
  z.strictObject({ ...fields, kind: z.literal('drift.found'), subject: driftSubject }),
  z.strictObject({ ...fields, kind: z.literal('drift.unrepairable'), subject: driftSubject }),
  z.strictObject({ ...fields, kind: z.literal('broker.down'), subject: brokerDownSubject }),
  z.strictObject({ ...fields, kind: z.literal('broker.back'), subject: brokerBackSubject }),
  z.strictObject({ ...fields, kind: z.literal('credential.expiring'), subject: expiringSubject }),
  z.strictObject({ ...fields, kind: z.literal('access-request.waiting'), subject: waitingSubject }),
  z.strictObject({ ...fields, kind: z.literal('test'), subject: testSubject }),
])
export type Notification = z.infer<typeof notificationSchema>

/** The body of a delivery. */
export const notificationPayload = z
  .strictObject({
    type: z.literal('keymesh.notifications'),
    timestamp: z.iso.datetime().describe('When this digest was made.'),
    data: z.strictObject({
      accountId: z.string(),
      accountName: z.string(),
      endpointId: z.string(),
      counts: z.record(z.string(), z.int()).describe('How many notifications of each kind.'),
      omitted: z.int().describe('How many of them are counted and not listed.'),
      notifications: z.array(notificationSchema),
    }),
  })
  .meta({ id: 'NotificationPayload' })
export type NotificationPayload = z.infer<typeof notificationPayload>

type Fact = {
  [Kind in Notification['kind']]: Pick<Extract<Notification, { kind: Kind }>, 'kind' | 'subject'>
}[Notification['kind']]

/** One line for a person. */
export function summaryOf(fact: Fact): string {
  switch (fact.kind) {
    case 'drift.found':
      return `Drift on broker ${fact.subject.brokerId}: ${objectOf(fact.subject)} (${fact.subject.action}).`
    case 'drift.unrepairable':
      return `Drift on broker ${fact.subject.brokerId} waits for a person: ${objectOf(fact.subject)} (${fact.subject.action}).`
    case 'broker.down':
      return `Broker ${fact.subject.brokerId} is down${fact.subject.errorCode === null ? '' : `: ${fact.subject.errorCode}`}.`
    case 'broker.back':
      return `Broker ${fact.subject.brokerId} is back.`
    case 'credential.expiring': {
      const { credentialName, registrationId, expiresAtMs } = fact.subject
      return `Credential ${credentialName} of registration ${registrationId} expires at ${new Date(expiresAtMs).toISOString()}.`
    }
    case 'access-request.waiting': {
      const { accessRequestId, registrationId, productId } = fact.subject
      return `Access request ${accessRequestId} of registration ${registrationId} for product ${productId} waits for approval.`
    }
    case 'test':
      return `A test, requested by ${fact.subject.requestedBy}.`
    default: {
      const unreachable: never = fact
      return unreachable
    }
  }
}

const objectOf = ({ objectKind, objectName, difference }: z.infer<typeof driftSubject>): string =>
  `${objectKind} ${objectName} ${PHRASES[difference] ?? `is ${difference}`}`

const PHRASES: Readonly<Record<string, string>> = {
  conflict: 'is in conflict',
  password: 'has another password',
}
