import { z } from 'zod'
import type { AttributeValue } from '../../domain/broker-object.ts'
import { OBJECT_KINDS } from '../../domain/broker-object.ts'
import { PROTOCOLS } from '../../domain/catalogue.ts'
import { NEGATIVE_CONTROLS, NOT_VERIFIED_REASONS, VERDICT_OUTCOMES } from '../../domain/verdict.ts'
import { REASONS, type Reason } from '../../reconcile/reasons.ts'
import type { PairState, RunTrigger } from '../../reconcile/store-port.ts'

/** Looked up, not made: what no id looks like is simply not there. */
export const idParameter = z.string().min(1).max(256)
export const epochMs = z.int().describe('Epoch milliseconds.')
export const flag = z.enum(['true', 'false']).transform((text) => text === 'true')

export const PAIR_STATES = [
  'in-sync',
  'held',
  'conflict',
  'refused',
  'error',
  'lagging',
] as const satisfies readonly PairState[]
export const TRIGGERS = [
  'revocation',
  'on-demand',
  'poll',
  'sweep',
  'operator',
] as const satisfies readonly RunTrigger[]
export const DRIFT_KINDS = ['missing', 'changed', 'unexpected', 'conflict', 'unsuitable', 'password'] as const

const reasons = Object.keys(REASONS) as [Reason, ...Reason[]]
const scalar = z.union([z.string(), z.number(), z.boolean()]) satisfies z.ZodType<AttributeValue>
const values = z.record(z.string(), z.union([scalar, z.array(z.string()).readonly(), z.null()])).readonly()
const object = z.strictObject({ kind: z.enum(OBJECT_KINDS), name: z.string() })

const difference = z.strictObject({
  object: z.looseObject({ kind: z.enum(OBJECT_KINDS), name: z.string() }),
  kind: z.enum(DRIFT_KINDS),
  before: values,
  after: values,
  reason: z.enum(reasons),
})

/** What one registration needs on one broker, as a run would do it now. */
export const plan = z
  .strictObject({
    brokerId: z.string(),
    registrationId: z.string(),
    generation: z.int(),
    steps: z.array(
      z.strictObject({
        action: z
          .looseObject({ type: z.string(), reason: z.enum(reasons) })
          .describe('What would be written: objects, attributes and members; never a secret.'),
        disruptive: z.boolean().describe('Whether it drops live clients.'),
        decision: z.enum(['run', 'held']),
        because: z.string().optional().describe('Why it is held.'),
      }),
    ),
    drift: z.array(difference),
    conflicts: z.array(difference),
    refused: z.strictObject({ reason: z.enum(reasons), message: z.string() }).nullable(),
    waitsUntilMs: epochMs.nullable(),
    notes: z.array(z.string()),
    lines: z.array(z.string()).describe('The same as text for a person.'),
  })
  .meta({ id: 'OperationsPlan' })

export const drift = z
  .strictObject({
    id: z.int(),
    brokerId: z.string(),
    registrationId: z.string().nullable().describe('Null: shared by the registrations of the message VPN.'),
    objectKind: z.string(),
    objectName: z.string(),
    kind: z.string(),
    reason: z.string(),
    before: z.record(z.string(), z.unknown()).readonly(),
    after: z.record(z.string(), z.unknown()).readonly(),
    action: z.string().describe('reported, repaired, held or failed.'),
    runId: z.string(),
    repairedByRunId: z.string().nullable(),
    detectedAtMs: epochMs,
    lastSeenAtMs: epochMs,
    repairedAtMs: epochMs.nullable().describe('Null while it is open.'),
  })
  .meta({ id: 'OperationsDrift' })

export const run = z
  .strictObject({
    id: z.string(),
    brokerId: z.string(),
    registrationId: z.string().nullable().describe('Null: a sweep of the whole broker.'),
    kind: z.string().describe('sweep or registration.'),
    trigger: z.string(),
    outcome: z.string(),
    steps: z.int(),
    held: z.int(),
    drift: z.int(),
    conflicts: z.int(),
    detail: z
      .record(z.string(), z.unknown())
      .readonly()
      .describe(
        'Of a registration: the first steps that ran and were held. Of a sweep: what it read and how it ended.',
      ),
    errorCode: z.string().nullable(),
    error: z.string().nullable(),
    startedAtMs: epochMs,
    finishedAtMs: epochMs.nullable(),
  })
  .meta({ id: 'OperationsRun' })

export const brokerStatus = z
  .strictObject({
    brokerId: z.string(),
    name: z.string(),
    environment: z.string().nullable(),
    eventMesh: z.string().nullable(),
    reachable: z.boolean().nullable().describe('Null: not tried yet.'),
    checkedAtMs: epochMs.nullable(),
    sempVersion: z.string().nullable(),
    paused: z.boolean(),
    errorCode: z.string().nullable(),
    error: z.string().nullable(),
    lastSweep: z.strictObject({ finishedAtMs: epochMs.nullable(), outcome: z.string() }).readonly().nullable(),
    registrations: z
      .strictObject({
        total: z.int(),
        inSync: z.int(),
        lagging: z.int(),
        drifted: z.int(),
        held: z.int(),
        conflict: z.int(),
        refused: z.int(),
        error: z.int(),
        needPerson: z.int().describe('Of all these, those that do not heal by themselves.'),
      })
      .readonly(),
    logins: z
      .strictObject({
        accepted: z.int(),
        rejected: z.int().describe('The broker says that the credential does not log in.'),
        notVerified: z.int(),
        acceptsAnything: z
          .array(z.enum(PROTOCOLS))
          .readonly()
          .describe('Where a wrong password was accepted, too, so that nothing is proved.'),
      })
      .readonly()
      .describe('The last login of each live credential over each protocol that the broker exposes.'),
    restsUntilMs: epochMs.nullable().describe('While a sick broker rests: when it is tried again.'),
    lookalikes: z
      .strictObject({ count: z.int(), growing: z.boolean(), examples: z.array(z.string()).readonly() })
      .readonly()
      .nullable()
      .describe(
        'Objects that look like those of Keymesh and are not in its ledger: left behind, or of another Keymesh.',
      ),
    oldestLagMs: z.int().nullable().describe('The longest that a registration has lagged.'),
    reasons: z
      .array(z.strictObject({ reason: z.string(), count: z.int() }).readonly())
      .readonly()
      .describe('Why registrations are not in sync, the most common first.'),
  })
  .meta({ id: 'OperationsBrokerStatus' })

const control = z
  .strictObject({ outcome: z.enum(NEGATIVE_CONTROLS), detail: z.string(), checkedAtMs: epochMs })
  .readonly()
  .nullable()
  .describe(
    'What a wrong password came to: an accepted login is a proof only where it was refused. Null: none was tried.',
  )

/** The last login with a credential on a broker, over one protocol. */
export const login = z
  .strictObject({
    brokerId: z.string(),
    registrationId: z.string(),
    consumerKey: z.string(),
    protocol: z.enum(PROTOCOLS),
    outcome: z
      .enum(VERDICT_OUTCOMES)
      .describe('denied: the login is good, and a topic or address is not allowed. not-verified holds nothing back.'),
    reason: z.enum(NOT_VERIFIED_REASONS).nullable().describe('Why nothing was proved; null when something was.'),
    detail: z.string(),
    checkedAtMs: epochMs,
    control,
  })
  .meta({ id: 'OperationsLogin' })

/** Of a registration on one broker. */
export const loginOfPair = login.omit({ brokerId: true, registrationId: true })

export const verifying = z
  .strictObject({
    brokers: z.array(z.string()).describe('Where logins will be made.'),
    queued: z.boolean().describe('False: the queue did not take it in time; ask again.'),
  })
  .meta({ id: 'OperationsVerifying' })

export const pairStatus = z
  .strictObject({
    registrationId: z.string(),
    brokerId: z.string(),
    wanted: z.boolean().describe('False: it is being withdrawn, or was.'),
    state: z.enum(PAIR_STATES),
    reason: z.string().nullable(),
    generation: z.int(),
    reachedGeneration: z.int(),
    attempts: z.int().describe('Failed runs in a row.'),
    failingSinceMs: epochMs.nullable(),
    needsPerson: z.boolean().describe('It does not heal by itself; access requests that rest on it are in ERROR.'),
    openDrift: z.int(),
    paused: z.boolean(),
    dueAtMs: epochMs.nullable(),
    reconciledAtMs: epochMs.nullable(),
  })
  .meta({ id: 'OperationsRegistrationStatus' })

export const enqueued = z
  .strictObject({
    sweeps: z.array(z.string()).describe('Brokers that will be swept.'),
    registrations: z
      .array(z.strictObject({ registrationId: z.string(), brokerId: z.string() }))
      .describe('Registrations that will be reconciled, each on one broker; at most 1000 are shown.'),
    count: z.int().describe('How many in all.'),
    queued: z.boolean().describe('False: the queue did not take them in time; the poll will find them.'),
  })
  .meta({ id: 'OperationsEnqueued' })

export { object as brokerObject }
