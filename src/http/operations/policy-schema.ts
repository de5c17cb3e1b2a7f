import { z } from 'zod'
import { ADOPTIONS, type BrokerPolicy, DISRUPTIVE_POLICIES, POLICY_MODES } from '../../domain/catalogue.ts'

const WINDOW = /^(([01]\d|2[0-3]):[0-5]\d)-(([01]\d|2[0-3]):[0-5]\d)$/
const window = z
  .string()
  .superRefine((text, context) => {
    const times = WINDOW.exec(text)
    if (times === null || times[1] === times[3]) {
      context.addIssue({ code: 'custom', message: 'must be two different times in UTC, such as 02:00-04:00' })
    }
  })
  .meta({ description: 'Daily, in UTC; may go over midnight.', example: '02:00-04:00' })

/** How much Keymesh may change on a broker. */
export const policySchema = z
  .strictObject({
    mode: z.enum(POLICY_MODES),
    adopt: z.enum(ADOPTIONS).describe('What happens to an object that has a name we want and is not ours.'),
    disruptive: z.enum(DISRUPTIVE_POLICIES).describe('Whether an action that drops live clients runs by itself.'),
    window: window.nullable(),
    maxWithdrawals: z.int().min(0).describe('Registrations that may be withdrawn at once before a person is asked.'),
    maxWithdrawalsPercent: z.number().min(0).max(100),
    queuesWithMessages: z.enum(['keep', 'delete']),
    queuePermission: z.enum(['no-access', 'consume']),
  })
  .meta({ id: 'BrokerPolicy' })
export type PolicyBody = z.output<typeof policySchema>

/** A change of some of it. */
export const policyChangeSchema = policySchema.partial()

export const WINDOW_MISSING = { path: 'window', message: 'must be given with disruptive: window' } as const

export function toPolicyBody({ window: daily, ...policy }: BrokerPolicy): PolicyBody {
  return { ...policy, window: daily === null ? null : `${timeOf(daily.fromMinute)}-${timeOf(daily.toMinute)}` }
}

export function fromPolicyBody({ window: daily, ...policy }: PolicyBody): BrokerPolicy {
  const [from = '', to = ''] = daily?.split('-') ?? []
  return { ...policy, window: daily === null ? null : { fromMinute: minuteOf(from), toMinute: minuteOf(to) } }
}

const timeOf = (minute: number): string =>
  [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':')
const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))
