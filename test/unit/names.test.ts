import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  aclProfileName,
  catalogueIdProblem,
  clientUsernameProblem,
  consumerKeyProblem,
  consumerSecretProblem,
  externalIdProblem,
  msgVpnNameProblem,
  nameProblem,
  queueName,
} from '../../src/domain/names.ts'

const externalId = fc
  .oneof(
    fc.stringMatching(/^[a-zA-Z0-9_-]{0,40}(@[ |!-~]{0,24})?$/),
    fc.stringMatching(/^[a-c_-]{2,3}(@[a-c~ ]{0,2})?$/),
  )
  .filter((text) => externalIdProblem(text) === null)

describe('aclProfileName', () => {
  it.each([
    ['a short id as it is', 'track-and-trace', 'track-and-trace'],
    ['an id of 32 characters as it is', 'a'.repeat(32), 'a'.repeat(32)],
    ['an id with a plain part after @', 'portal@acme', 'portal@acme'],
    ['a shortened longer id', 'a'.repeat(33), '~g36fr4vr4lr3jugvpl6cakj2cm'],
    ["a shortened form for the broker's own name", 'default', '~nokjducc2iyxzkrkdhiuap52gq'],
    ['a shortened form for characters a broker may refuse', 'app@a*b', '~xsk3a6thfuwx3oo4jdedjykxjq'],
  ])('is %s', (_, id, name) => {
    expect(aclProfileName(id)).toBe(name)
  })

  it('fits the broker and never meets another', () => {
    fc.assert(
      fc.property(externalId, externalId, (one, other) => {
        const name = aclProfileName(one)
        expect(name.length).toBeLessThanOrEqual(32)
        expect(name).toMatch(/^[A-Za-z0-9_@.~-]+$/)
        if (one !== other) expect(aclProfileName(other)).not.toBe(name)
      }),
      { numRuns: 2000 },
    )
  })

  it('shortens to a form that no id used as it is can have', () => {
    fc.assert(
      fc.property(externalId, (id) => {
        const name = aclProfileName(id)
        if (name !== id) {
          expect(name).toMatch(/^~[a-z2-7]{26}$/)
          expect(externalIdProblem(name)).not.toBeNull()
        }
      }),
    )
  })
})

describe('queueName', () => {
  const parts = { accountId: 'acme', registrationId: 'app-1', accessRequestId: 'ar-1' }

  it('is stable: a changed name would leave queues behind', () => {
    expect(queueName(parts)).toBe('keymesh-bdw7f3sno6qmxxh6slf62hv23e')
    expect(queueName({ ...parts, eventApiId: 'parcels' })).toBe('keymesh-zvbwx7oparoxv6dzlqazqnqc4a')
  })

  it('differs when any part differs, also when text moves from one part to the next', () => {
    const text = fc.string({ maxLength: 4 })
    const anyParts = fc.record(
      { accountId: text, registrationId: text, accessRequestId: text, eventApiId: text, nonce: text },
      { requiredKeys: ['accountId', 'registrationId', 'accessRequestId'] },
    )
    fc.assert(
      fc.property(anyParts, anyParts, (one, other) => {
        const same = JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort())
        expect(queueName(one) === queueName(other)).toBe(same)
        expect(queueName(one)).toMatch(/^keymesh-[a-z2-7]{26}$/)
      }),
    )
    expect(queueName({ ...parts, accountId: 'ac', registrationId: 'meapp-1' })).not.toBe(queueName(parts))
    expect(queueName({ ...parts, eventApiId: '' })).not.toBe(queueName(parts))
  })
})

describe('names and credentials', () => {
  type Check = (text: string) => string | null
  const good: readonly (readonly [string, Check, string])[] = [
    ['a registration id', externalIdProblem, 'ab'],
    ['a registration id with a tail', externalIdProblem, 'portal-7@team | one'],
    ['a registration id of 64 characters', externalIdProblem, 'x'.repeat(64)],
    ['a catalogue id', catalogueIdProblem, 'n8kg4fjka9r'],
    ['a name', nameProblem, 'Parcel tracking, Nürnberg'],
    ['a client username', clientUsernameProblem, 'x'.repeat(189)],
    ['a consumer key', consumerKeyProblem, 'key_8-ok'],
    ['a consumer secret', consumerSecretProblem, 's'.repeat(64)],
    ['a message VPN', msgVpnNameProblem, 'v'.repeat(32)],
  ]
  it.each(good)('takes %s', (_, problem, text) => {
    expect(problem(text)).toBeNull()
  })

  const bad: readonly (readonly [string, Check, string, string])[] = [
    ['a registration id of one character', externalIdProblem, 'a', '2 to 64 characters'],
    ['a registration id of 65 characters', externalIdProblem, 'x'.repeat(65), 'it has 65'],
    ['a registration id with a slash', externalIdProblem, 'a/b', 'may contain'],
    ['a registration id with a line break', externalIdProblem, 'ab@c\nd', 'control characters'],
    ['a registration id with a NUL', externalIdProblem, 'ab@c\u0000', 'control characters'],
    ['a catalogue id with a hyphen', catalogueIdProblem, 'a-b', 'letters and digits only'],
    ['an empty name', nameProblem, '', '1 to 128'],
    ['a name with a control character', nameProblem, 'a\u0007', 'control characters'],
    ['the reserved username default', clientUsernameProblem, 'default', 'reserved'],
    ['a reserved username with a hash', clientUsernameProblem, '#client', 'reserved'],
    ['a username of 190 characters', clientUsernameProblem, 'x'.repeat(190), 'it has 190'],
    ['a username with a star', clientUsernameProblem, 'a*', '`?` or `*`'],
    ['a consumer key of 7 characters', consumerKeyProblem, 'abcdefg', '8 to 64'],
    ['a consumer key of 65 characters', consumerKeyProblem, 'x'.repeat(65), 'it has 65'],
    ['a consumer key with a space', consumerKeyProblem, 'abc defgh', 'letters, digits'],
    ['a consumer key that begins with a hash', consumerKeyProblem, '#abcdefgh', 'reserved'],
    ['a consumer secret of 7 characters', consumerSecretProblem, 'abcdefg', '8 to 64'],
    ['a message VPN of 33 characters', msgVpnNameProblem, 'v'.repeat(33), '1 to 32'],
    ['a message VPN with a question mark', msgVpnNameProblem, 'v?', '`?` or `*`'],
  ]
  it.each(bad)('refuses %s', (_, problem, text, message) => {
    expect(problem(text)).toContain(message)
  })

  it('never repeats a secret', () => {
    expect(consumerSecretProblem('s3cret value!')).not.toContain('s3cret')
  })
})
