import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import type { BrokerObject } from '../../src/domain/broker-object.ts'
import { ExpectedState } from '../../src/reconcile/expected-state.ts'
import { PAIR, pairOf } from '../helpers/sample.ts'

const acl = (name: string, topics: readonly string[], action = 'disallow'): BrokerObject => ({
  kind: 'aclProfile',
  name,
  attributes: { publishTopicDefaultAction: action },
  members: { publishTopicExceptions: topics },
})
const user = (name: string, enabled: boolean): BrokerObject => ({
  kind: 'clientUsername',
  name,
  attributes: { enabled },
  members: {},
})
const A = pairOf('a').registrationId
const B = pairOf('b').registrationId

describe('ExpectedState', () => {
  it('suspects the owners of all that was not seen as expected', () => {
    const expected = new ExpectedState()
    expected.expect(acl('one', ['x']), A)
    expected.expect(acl('two', ['x']), B)
    expect(expected.see(acl('one', ['x']))).toBe(true)
    expect(expected.see(acl('two', ['x', 'y']))).toBe(false)
    expect(expected.suspects()).toEqual(new Set([B]))
  })

  it('compares what is set, in any order, and nothing else', () => {
    const expected = new ExpectedState()
    expected.expect(acl('one', ['x', 'y']), A)
    const seen = { ...acl('one', ['y', 'x', 'y']), attributes: { other: 1, publishTopicDefaultAction: 'disallow' } }
    expect(expected.see(seen)).toBe(true)
    expect(expected.suspects().size).toBe(0)
  })

  it('tells kinds, names and values apart', () => {
    const expected = new ExpectedState()
    expected.expect(acl('one', ['x']), A)
    expect(expected.knows({ kind: 'queue', name: 'one' })).toBe(false)
    expect(expected.knows({ kind: 'aclProfile', name: 'one' })).toBe(true)
    expect(expected.see(acl('one', ['x'], 'allow'))).toBe(false)
    expect(expected.see(acl('one', []))).toBe(false)
    expect(expected.see({ ...acl('one', ['x']), kind: 'queue' })).toBe(false)
  })

  it('wants a withdrawn username switched off, whatever else it is', () => {
    const expected = new ExpectedState()
    expected.expectDisabled({ kind: 'clientUsername', name: 'left' }, A)
    expected.expectDisabled({ kind: 'clientUsername', name: 'gone' }, B)
    expected.expect(user('here', true), pairOf('c').registrationId)
    expect(expected.see(user('left', true))).toBe(false)
    expect(expected.see({ ...user('left', false), attributes: { enabled: false, aclProfileName: 'other' } })).toBe(true)
    expect(expected.see(user('here', true))).toBe(true)
    expect(expected.suspects()).toEqual(new Set([B]))
  })

  it('keeps some numbers for each object, however large the object is', () => {
    const collect = collector()
    const count = 20_000
    const expected = new ExpectedState()
    collect()
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < count; index += 1) {
      const topics = Array.from({ length: 20 }, (_, topic) => `a/topic/of/some/length/${index}/${topic}`)
      expected.expect(acl(`acl-${index}`, topics), PAIR.registrationId)
    }
    collect()
    const bytes = process.memoryUsage().heapUsed - before
    expect(expected.size).toBe(count)
    expect(bytes / count).toBeLessThan(300)
  })
})

/** The garbage collector, which Node.js hides unless asked. */
function collector(): () => void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') throw new Error('no garbage collector')
  return () => void collect()
}
