import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BrokerModel } from '../../src/sandbox/broker-model.ts'
import { aclAllows, covers, type Direction, fromMqtt, matches } from '../../src/sandbox/login/topic-access.ts'
import { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import { ACL_PROFILES } from '../../src/sandbox/object-tables.ts'
import { FULL_PAGES } from '../../src/sandbox/semp-paging.ts'

describe('a pattern and a published topic', () => {
  it.each([
    ['a/b', 'a/b', true],
    ['a/b', 'a/b/c', false],
    ['a/b', 'a', false],
    ['a/b', 'A/b', false],
    ['a/*', 'a/b', true],
    ['a/*', 'a', false],
    ['a/*', 'a/b/c', false],
    ['a/*', 'a/', true],
    ['a/b*', 'a/b', true],
    ['a/b*', 'a/bcd', true],
    ['a/b*', 'a/cb', false],
    ['a/*/c', 'a/b/c', true],
    ['a/*/c', 'a/b/d', false],
    ['*/*', 'a/b', true],
    ['*', 'a/b', false],
    ['a/>', 'a/b', true],
    ['a/>', 'a/b/c/d', true],
    ['a/>', 'a', false],
    ['a/>', 'a/', true],
    ['>', 'a/b/c', true],
    ['a/*/>', 'a/b', false],
    ['a/*/>', 'a/b/c', true],
    ['a/>/c', 'a/b/c', false],
    ['a/>/c', 'a/>/c', true],
    ['a/b>', 'a/b>', true],
    ['a/b>', 'a/bc', false],
    ['a*b', 'axb', false],
    // Wildcards in the topic of a message are text.
    ['a/*', 'a/>', true],
    ['a/b', 'a/*', false],
    ['a/>', 'a/*', true],
  ])('%s and %s: %s', (pattern, topic, expected) => {
    expect(matches(pattern, topic)).toBe(expected)
  })
})

describe('a pattern and a filter', () => {
  it.each([
    ['a/b', 'a/b', true],
    ['a/*', 'a/b', true],
    ['a/*', 'a/b*', true],
    ['a/*', 'a/*', true],
    ['a/b*', 'a/*', false],
    ['a/b*', 'a/b', true],
    ['a/b*', 'a/bc*', true],
    ['a/bc*', 'a/b*', false],
    ['a/b', 'a/*', false],
    ['a/*', 'a/>', false],
    ['a/*', '>', false],
    ['a/>', 'a/>', true],
    ['a/>', 'a/b/>', true],
    ['a/b/>', 'a/>', false],
    ['a/*/>', 'a/>', false],
    ['a/>', 'a/*', true],
    ['a/>', 'a', false],
    ['>', '>', true],
    ['>', '*', true],
    ['*', '>', false],
    ['*/>', '>', false],
  ])('%s and %s: %s', (pattern, filter, expected) => {
    expect(covers(pattern, filter)).toBe(expected)
  })
})

describe('laws of patterns', () => {
  // The letter `b` is in no pattern: it stands for all the text that none of them names.
  const texts = ['', 'a', 'b', 'aa', 'ab', 'aaa', 'aab', '>']
  const levels = fc.constantFrom('', 'a', 'aa', '*', 'a*', 'aa*', '>')
  const pattern = fc.array(levels, { minLength: 1, maxLength: 3 }).map((list) => list.join('/'))
  const longer = (topics: readonly string[]) => topics.flatMap((topic) => texts.map((text) => `${topic}/${text}`))
  const universe = [texts, longer(texts), longer(longer(texts)), longer(longer(longer(texts)))].flat()
  const topic = fc.constantFrom(...universe)

  /** The same rules, said as a regular expression. */
  const expression = (text: string) => {
    const parts = text.split('/').map((level, index, all) => {
      if (level === '>' && index === all.length - 1) return '[^]*'
      return level.endsWith('*') ? `${level.slice(0, -1)}[^/]*` : level
    })
    return new RegExp(`^${parts.join('/')}$`)
  }

  it('a match is what the regular expression says', () => {
    fc.assert(
      fc.property(pattern, topic, (one, published) => {
        expect(matches(one, published)).toBe(expression(one).test(published))
      }),
      { numRuns: 2000 },
    )
  })

  it('a pattern covers a filter exactly when it matches every topic that the filter matches', () => {
    const matched = new Map<string, readonly string[]>()
    const topicsOf = (text: string) => {
      const known = matched.get(text) ?? universe.filter((published) => expression(text).test(published))
      matched.set(text, known)
      return known
    }
    fc.assert(
      fc.property(pattern, pattern, (one, other) => {
        const everyOne = topicsOf(other).every((published) => expression(one).test(published))
        expect(covers(one, other), `${one} covers ${other}`).toBe(everyOne)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('MQTT syntax', () => {
  it.each([
    ['a/b', 'a/b'],
    ['a/+/c', 'a/*/c'],
    ['a/#', 'a/>'],
    ['#', '>'],
    ['+', '*'],
    ['+/+', '*/*'],
    ['a/#/c', 'a/#/c'],
    ['a+/b#', 'a+/b#'],
    ['/a//b/', '/a//b/'],
  ])('%s is %s', (filter, expected) => {
    expect(fromMqtt(filter)).toBe(expected)
  })
})

describe('an ACL profile', () => {
  const NAME = 'profile'
  function profile(defaultAction: 'allow' | 'disallow', exceptions: readonly string[]) {
    const model = new BrokerModel({
      seed: 1,
      sempVersion: '2.49',
      msgVpnNames: ['vpn'],
      msgVpnValues: {},
      sempScope: 'global',
      paging: FULL_PAGES,
    })
    const { aclProfiles } = new MsgVpnState(model, 'vpn')
    aclProfiles.put(NAME, { publishTopicDefaultAction: defaultAction, subscribeTopicDefaultAction: defaultAction })
    for (const exception of exceptions) {
      aclProfiles.addMember(NAME, 'publishTopicExceptions', exception)
      aclProfiles.addMember(NAME, 'subscribeTopicExceptions', exception)
    }
    const object = model.collection('vpn', ACL_PROFILES)?.get(NAME)
    if (object === undefined) throw new Error('expected a profile')
    return object
  }

  it.each<[string, 'allow' | 'disallow', readonly string[], Direction, string, boolean]>([
    ['nothing by default', 'disallow', [], 'publish', 'a', false],
    ['all by default', 'allow', [], 'publish', 'a', true],
    ['an exception to nothing', 'disallow', ['smf,a/b'], 'publish', 'a/b', true],
    ['no exception fits', 'disallow', ['smf,a/b'], 'publish', 'a/c', false],
    ['an exception to all', 'allow', ['smf,a/b'], 'publish', 'a/b', false],
    ['one of several', 'disallow', ['smf,a/b', 'smf,a/c*'], 'publish', 'a/cd', true],
    ['a comma in the topic', 'disallow', ['smf,a,b/c'], 'publish', 'a,b/c', true],
    ['MQTT syntax', 'disallow', ['mqtt,a/+/#'], 'publish', 'a/b/c/d', true],
    ['`+` is text in SMF syntax', 'disallow', ['smf,a/+'], 'publish', 'a/b', false],
    ['a filter inside the exception', 'disallow', ['smf,a/*'], 'subscribe', 'a/b*', true],
    ['a filter that is the exception', 'disallow', ['smf,a/*'], 'subscribe', 'a/*', true],
    ['a filter wider than the exception', 'disallow', ['smf,a/*'], 'subscribe', 'a/>', false],
    ['a filter that two exceptions share', 'disallow', ['smf,a/b', 'smf,a/c'], 'subscribe', 'a/*', false],
    ['a wildcard in a published topic is text', 'disallow', ['smf,a/b'], 'publish', 'a/*', false],
  ])('%s', (_sentence, defaultAction, exceptions, direction, topic, expected) => {
    expect(aclAllows(profile(defaultAction, exceptions), direction, topic)).toBe(expected)
  })
})
