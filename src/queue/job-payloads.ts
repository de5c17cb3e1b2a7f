import { z } from 'zod'
import { PROTOCOLS } from '../domain/catalogue.ts'
import { KeymeshError } from '../domain/errors.ts'
import { accountId, brokerId, registrationId } from '../domain/ids.ts'

/**
 * What jobs carry: names, never a secret and never what to apply (invariant 2). Each schema is strict, so that nothing
 * else gets into a job's row, and bounds its texts. NUL and lone surrogates are refused: PostgreSQL cannot store them.
 */
const name = z
  .string()
  .min(1)
  .max(256)
  .refine((text) => text.isWellFormed() && !text.includes('\u0000'), 'holds a character that no name has')

const broker = { accountId: name.transform(accountId), brokerId: name.transform(brokerId) }
const registration = { accountId: name.transform(accountId), registrationId: name.transform(registrationId) }
const trigger = z.enum(['revocation', 'on-demand', 'poll', 'sweep', 'operator'])
const asked = {
  /** Set by the queue on a running job when somebody asks for the same again. */
  askedAtMs: z.number().int().nonnegative().optional(),
  /** The trace that asked for it (W3C Trace Context): two random numbers and a flag. */
  trace: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional(),
}

export const JOB_PAYLOADS = {
  'poll-catalogue': z.strictObject({}),
  'poll-registrations': z.strictObject({}),
  'reconcile-registration': z.strictObject({ ...registration, ...asked }),
  'reconcile-pair': z.strictObject({ ...broker, ...registration, ...asked, trigger }),
  'sweep-broker': z.strictObject({ ...broker, ...asked, trigger }),
  'verify-broker': z.strictObject({
    ...broker,
    registrationId: registration.registrationId.optional(),
    protocol: z.enum(PROTOCOLS).optional(),
    ...asked,
  }),
  'sweep-brokers': z.strictObject({}),
  'retire-expired': z.strictObject({}),
  'prune-records': z.strictObject({}),
  'poll-notifications': z.strictObject({}),
  'deliver-notifications': z.strictObject({
    accountId: broker.accountId,
    endpointId: name,
    ...asked,
  }),
} as const

export type JobName = keyof typeof JOB_PAYLOADS
export type JobPayload<Name extends JobName> = z.output<(typeof JOB_PAYLOADS)[Name]>

export const isJobName = (text: string): text is JobName => Object.hasOwn(JOB_PAYLOADS, text)

/** Throws `JOB_PAYLOAD` (stop) naming the fields, never their values. */
export function parsePayload<Name extends JobName>(jobName: Name, data: unknown): JobPayload<Name> {
  const parsed = JOB_PAYLOADS[jobName].safeParse(data)
  if (parsed.success) return parsed.data as JobPayload<Name>
  const fields = parsed.error.issues.map(({ path, code }) => `${path.join('.') || 'payload'} (${code})`)
  throw new KeymeshError({
    code: 'JOB_PAYLOAD',
    fate: 'stop',
    message: `A job ${jobName} carries a payload of another shape: ${fields.join(', ')}.`,
    hint: 'It comes from another version or from outside; the poll finds what is still to be done.',
  })
}
