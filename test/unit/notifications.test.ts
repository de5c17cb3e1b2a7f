import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listedOf, NOTIFICATION_KINDS, retryDelayMs } from '../../src/domain/notifications.ts'
import { Secret } from '../../src/domain/secret.ts'
import { signatureHeaders } from '../../src/notifications/signature.ts'
import { isSignedBy } from '../helpers/notification-receiver.ts'

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, each) => total + each, 0)

describe('a digest', () => {
  const counts = fc
    .uniqueArray(fc.tuple(fc.constantFrom(...NOTIFICATION_KINDS), fc.integer({ min: 1, max: 10_000 })), {
      selector: ([kind]) => kind,
    })
    .map((entries) => new Map(entries))
  const places = fc.integer({ min: 0, max: 200 })

  it('lists as many as it has places for, and never more of a kind than there are', () => {
    fc.assert(
      fc.property(counts, places, (given, most) => {
        const listed = listedOf(given, most)
        expect(sum(listed.values())).toBe(Math.min(most, sum(given.values())))
        for (const [kind, count] of listed) expect(count).toBeLessThanOrEqual(given.get(kind) ?? 0)
      }),
    )
  })

  it('gives no kind a place more than another that could use it', () => {
    fc.assert(
      fc.property(counts, places, (given, most) => {
        const listed = listedOf(given, most)
        const short = [...given].filter(([kind, count]) => (listed.get(kind) ?? 0) < count)
        const longest = Math.max(0, ...listed.values())
        for (const [kind] of short) expect(listed.get(kind)).toBeGreaterThanOrEqual(longest - 1)
      }),
    )
  })
})

describe('the delay of a delivery', () => {
  it('grows with the attempts up to an hour, and is never less than half of it', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (attempts, random) => {
          const delayMs = retryDelayMs(attempts, random)
          const fullMs = Math.min(3_600_000, 10_000 * 2 ** (attempts - 1))
          expect(delayMs).toBeGreaterThanOrEqual(fullMs / 2)
          expect(delayMs).toBeLessThanOrEqual(fullMs)
        },
      ),
    )
  })

  it.each([
    ['is what the receiver asks for, when that is longer', 120_000, 120_000],
    ['is its own, when the receiver asks for less', 1_000, 10_000],
    ['is no more than an hour, whatever the receiver asks for', 86_400_000, 3_600_000],
  ])('%s', (_sentence, askedMs, expected) => {
    expect(retryDelayMs(1, 0.999999, askedMs)).toBeCloseTo(expected, -2)
  })
})

describe('the signature', () => {
  const signed = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampSeconds: 1_614_265_330, body: '{"test": 2432232314}' }

  it('is the one of the example in the description of Standard Webhooks', () => {
    const headers = signatureHeaders([new Secret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')], signed)
    expect(headers).toEqual({
      'webhook-id': signed.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('is verified by whoever has the secret, over any body, and by nobody else', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        fc.string({ unit: 'binary' }),
        (key, other, body) => {
          const [ours, theirs] = [key, other].map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`)
          fc.pre(ours !== undefined && theirs !== undefined && ours !== theirs)
          const headers = signatureHeaders([new Secret(ours ?? '')], { ...signed, body })
          expect(isSignedBy(ours ?? '', { headers, body })).toBe(true)
          expect(isSignedBy(theirs ?? '', { headers, body })).toBe(false)
          expect(isSignedBy(ours ?? '', { headers, body: `${body}!` })).toBe(false)
        },
      ),
    )
  })
})
