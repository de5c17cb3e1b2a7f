import { describe, expect, it } from 'vitest'
import { type GuardInput, guard } from '../../src/reconcile/policy.ts'
import type { Reason } from '../../src/reconcile/reasons.ts'
import { policyOf } from '../helpers/sample.ts'

const input = (given: Partial<GuardInput>): GuardInput => ({
  policy: policyOf({ maxWithdrawals: 10, maxWithdrawalsPercent: 30 }),
  deletes: 0,
  maxDeletes: 50,
  withdrawn: true,
  confirmed: false,
  registrationsOnBroker: 100,
  withdrawnOnBroker: 1,
  ...given,
})

const cases: Readonly<Record<string, readonly [Partial<GuardInput>, Reason | null]>> = {
  'one withdrawal of many': [{}, null],
  'the only registration of the broker': [{ registrationsOnBroker: 1 }, null],
  'as many withdrawals as allowed, whatever the share': [{ withdrawnOnBroker: 10, registrationsOnBroker: 11 }, null],
  'one more, within the share': [{ withdrawnOnBroker: 11, registrationsOnBroker: 100 }, null],
  'exactly the share': [{ withdrawnOnBroker: 30, registrationsOnBroker: 100 }, null],
  'more than the share': [{ withdrawnOnBroker: 31, registrationsOnBroker: 100 }, 'too-many-withdrawals'],
  'all of many': [{ withdrawnOnBroker: 11, registrationsOnBroker: 11 }, 'empty-desired-state'],
  'all of many, confirmed by a person': [{ withdrawnOnBroker: 11, registrationsOnBroker: 11, confirmed: true }, null],
  'a registration that stays while many go': [{ withdrawn: false, withdrawnOnBroker: 99 }, null],
  'as many deletions as allowed': [{ withdrawn: false, deletes: 50 }, null],
  'one deletion more than allowed': [{ withdrawn: false, deletes: 51 }, 'too-many-deletes'],
  'one deletion more, confirmed by a person': [{ withdrawn: false, deletes: 51, confirmed: true }, null],
  'no deletion where none is allowed': [{ withdrawn: false, maxDeletes: 0 }, null],
  'a deletion where none is allowed': [{ withdrawn: false, maxDeletes: 0, deletes: 1 }, 'too-many-deletes'],
}

describe('guard', () => {
  it.each(Object.entries(cases))('%s', (_, [given, reason]) => {
    expect(guard(input(given))?.reason ?? null).toBe(reason)
  })

  it('says how many of how many', () => {
    const { message } = guard(input({ withdrawnOnBroker: 40, registrationsOnBroker: 100 })) ?? {}
    expect(message).toBe('40 of 100 registrations would be withdrawn from the broker, more than 30 percent')
  })
})
