import { describe, expect, it } from 'vitest'
import type { Channel } from '../../src/domain/catalogue.ts'
import type { Filters } from '../../src/domain/registration.ts'
import { filterValueProblem, topicCovers } from '../../src/domain/topic-pattern.ts'
import { channelProblem, DEFAULT_MAX_TOPICS, deriveTopics } from '../../src/domain/topics.ts'

const subscribeChannel = (name: string, parameterEnums: Channel['parameterEnums'] = {}): Channel => ({
  name,
  clientMayPublish: false,
  clientMaySubscribe: true,
  parameterEnums,
})

const topicsOf = (channel: Channel, ...filters: readonly Filters[]) =>
  deriveTopics({ channels: [channel], filters, maxTopics: DEFAULT_MAX_TOPICS })

describe('one channel becomes topics', () => {
  interface Case {
    readonly channel: string
    readonly enums?: Channel['parameterEnums']
    readonly filters?: readonly Filters[]
    readonly topics: readonly string[]
    readonly warnings?: number
  }
  const cases: Readonly<Record<string, Case>> = {
    'a literal channel is its topic': { channel: 'train/arrivals', topics: ['train/arrivals'] },
    'an unbound parameter is one level': { channel: 'train/{line}/delay', topics: ['train/*/delay'] },
    'a trailing unbound parameter is one level, not the rest': { channel: 'train/{line}', topics: ['train/*'] },
    'a channel that is only a parameter': { channel: '{line}', topics: ['*'] },
    'an enum gives one topic for each value': {
      channel: 'train/{line}/delay',
      enums: { line: ['s2', 's1'] },
      topics: ['train/s1/delay', 'train/s2/delay'],
    },
    'two enums give their product': {
      channel: '{line}/{kind}',
      enums: { line: ['s1', 's2'], kind: ['a', 'b'] },
      topics: ['s1/a', 's1/b', 's2/a', 's2/b'],
    },
    'a filter binds an unbound parameter': {
      channel: 'train/{line}',
      filters: [{ line: ['s1', 's3'] }],
      topics: ['train/s1', 'train/s3'],
    },
    'the first filter that names the parameter wins': {
      channel: 'train/{line}/{stop}',
      filters: [{ line: ['s1'] }, { line: ['s2'], stop: ['x'] }],
      topics: ['train/s1/x'],
    },
    'a filter narrows an enum': {
      channel: 'train/{line}',
      enums: { line: ['s1', 's2', 's3'] },
      filters: [{ line: ['s2'] }],
      topics: ['train/s2'],
    },
    'a filter value outside the enum grants nothing and warns': {
      channel: 'train/{line}',
      enums: { line: ['s1', 's2'] },
      filters: [{ line: ['s2', 'secret'] }],
      topics: ['train/s2'],
      warnings: 1,
    },
    'a prefix filter on an enum stands for the values it matches': {
      channel: 'train/{line}',
      enums: { line: ['s1', 's2', 'u1'] },
      filters: [{ line: ['s*'] }],
      topics: ['train/s1', 'train/s2'],
    },
    'a filter inside a prefix of the enum is kept': {
      channel: 'train/{line}',
      enums: { line: ['s*'] },
      filters: [{ line: ['s1', 's2*'] }],
      topics: ['train/s1', 'train/s2*'],
    },
    'a prefix filter on an unbound parameter is kept': {
      channel: 'train/{line}/delay',
      filters: [{ line: ['s*'] }],
      topics: ['train/s*/delay'],
    },
    'text before an unbound parameter is kept': { channel: 'a/abc{p}/z', topics: ['a/abc*/z'] },
    'text before a bound parameter is kept': { channel: 'a/v{p}', filters: [{ p: ['1'] }], topics: ['a/v1'] },
    'text after an unbound parameter makes the level a wildcard': { channel: 'a/{p}abc', topics: ['a/*'], warnings: 1 },
    'text around an unbound parameter makes the level a wildcard': { channel: 'x{p}y/b', topics: ['*/b'], warnings: 1 },
    'text after a bound parameter is kept': { channel: 'x{p}y/b', filters: [{ p: ['1'] }], topics: ['x1y/b'] },
    'text after a prefix value is lost, the text before is kept': {
      channel: 'x{p}y/b',
      filters: [{ p: ['1*'] }],
      topics: ['x1*/b'],
      warnings: 1,
    },
    'several unbound parameters in a level are one wildcard': { channel: 'x{p}{q}', topics: ['x*'] },
    'an unbound parameter after a bound one is a prefix': {
      channel: '{p}-{q}',
      filters: [{ p: ['ab'] }],
      topics: ['ab-*'],
    },
    'text after an unbound parameter makes the level a wildcard though another is bound': {
      channel: '{p}-{q}',
      filters: [{ q: ['ab'] }],
      topics: ['*'],
      warnings: 1,
    },
    'a bound parameter after an unbound one is lost, the text before is kept': {
      channel: 'x{p}{q}',
      filters: [{ q: ['ab'] }],
      topics: ['x*'],
      warnings: 1,
    },
    'all parameters of a level bound': {
      channel: '{p}-{q}',
      filters: [{ p: ['1', '2'], q: ['a'] }],
      topics: ['1-a', '2-a'],
    },
    'a parameter has the same value in all its places': {
      channel: '{p}/to/{p}',
      enums: { p: ['a', 'b'] },
      topics: ['a/to/a', 'b/to/b'],
    },
    'a wildcard that the channel writes itself is kept': { channel: 'a/b*/*', topics: ['a/b*/*'] },
    'a wildcard of the channel after an unbound parameter adds nothing': { channel: 'a/{p}*', topics: ['a/*'] },
    'equal values count once': { channel: 'a/{p}', filters: [{ p: ['x', 'x'] }], topics: ['a/x'] },
    'a filter without a parameter is noted': {
      channel: 'a/{p}',
      filters: [{ p: ['x'], q: ['y'] }],
      topics: ['a/x'],
      warnings: 1,
    },
    'a parameter may be named like a property of every object': { channel: 'a/{constructor}', topics: ['a/*'] },
    'a slash inside braces belongs to the name': { channel: 'a/{b/c}/d', topics: ['a/*/d'] },
  }
  it.each(Object.entries(cases))('%s', (_, { channel, enums, filters = [], topics, warnings = 0 }) => {
    const result = topicsOf(subscribeChannel(channel, enums), ...filters)
    expect(result).toMatchObject({ ok: true, publish: [], subscribe: topics })
    expect(result.ok && result.warnings).toHaveLength(warnings)
  })
})

describe('what cannot become a topic is a problem that says why', () => {
  const cases: Readonly<Record<string, readonly [Channel, Filters, string]>> = {
    'a multi-level wildcard in a channel': [subscribeChannel('a/>'), {}, 'contains `>`'],
    'a multi-level wildcard in a filter': [subscribeChannel('a/{p}'), { p: ['>'] }, 'whose value ">" contains `>`'],
    'a multi-level wildcard in an enum': [subscribeChannel('a/{p}', { p: ['x', '>'] }), {}, 'whose enum value ">"'],
    'a slash in a filter': [subscribeChannel('a/{p}'), { p: ['b/c'] }, 'contains `/`'],
    'an exclamation mark in a filter': [subscribeChannel('{p}/a'), { p: ['!b'] }, 'contains `!`'],
    'a control character in a filter': [subscribeChannel('a/{p}'), { p: ['b\u0000'] }, 'contains a control character'],
    'a lone surrogate in a filter': [subscribeChannel('a/{p}'), { p: ['b\ud800'] }, 'contains a control character'],
    'a star before the end of a filter': [subscribeChannel('a/{p}'), { p: ['b*c'] }, 'contains `*` before its end'],
    'an empty filter value': [subscribeChannel('a/{p}'), { p: [''] }, 'is empty'],
    'a filter without values': [subscribeChannel('a/{p}'), { p: [] }, 'without values'],
    'a star in the middle of a level': [subscribeChannel('a/b*c'), {}, 'contains `*` before its end'],
    'a star before a parameter': [subscribeChannel('a/b*{p}'), {}, 'contains `*` before the end of a level'],
    'a leading hash': [subscribeChannel('#noexport/a'), {}, 'begins with `#`'],
    'a leading hash from a filter': [subscribeChannel('{p}/a'), { p: ['#share'] }, 'begins with `#`'],
    'a leading slash': [subscribeChannel('/a/b'), {}, 'empty level'],
    'a trailing slash': [subscribeChannel('a/b/'), {}, 'empty level'],
    'a doubled slash': [subscribeChannel('a//b'), {}, 'empty level'],
    'an empty channel': [subscribeChannel(''), {}, 'empty level'],
    'a brace without its pair': [subscribeChannel('a/{b'), {}, 'brace without its pair'],
    'a closing brace without its pair': [subscribeChannel('a/b}'), {}, 'brace without its pair'],
    'a parameter without a name': [subscribeChannel('a/{}'), {}, 'without a name'],
    'a topic of 251 bytes': [subscribeChannel('a'.repeat(251)), {}, 'has 251 bytes'],
    'a topic of 126 two-byte characters': [subscribeChannel('é'.repeat(126)), {}, 'has 252 bytes'],
  }
  it.each(Object.entries(cases))('%s', (_, [channel, filters, problem]) => {
    const result = topicsOf(channel, filters)
    expect(result).toEqual({ ok: false, problem: expect.stringContaining(problem) })
  })

  it('takes a topic of exactly 250 bytes', () => {
    expect(topicsOf(subscribeChannel('a'.repeat(250)))).toMatchObject({ ok: true })
  })

  it('finds a bad enum value though a filter hides it', () => {
    expect(channelProblem(subscribeChannel('a/{p}', { p: ['x', 'y/z'] }))).toContain('"y/z" contains `/`')
  })
})

describe('the bound', () => {
  const values = Array.from({ length: 40 }, (_, number) => `v${number}`)

  it('refuses a product past it without building it', () => {
    const channel = subscribeChannel('{a}/{b}/{c}/{d}', { a: values, b: values, c: values, d: values })
    expect(topicsOf(channel)).toEqual({
      ok: false,
      problem: 'Channel `{a}/{b}/{c}/{d}` gives 2560000 topics, 1000 are allowed: narrow it with filters.',
    })
    expect(topicsOf(channel, { a: ['v1'], b: ['v2'] })).toMatchObject({ ok: false })
    expect(topicsOf(channel, { a: ['v1'], b: ['v2'], c: ['v3'] })).toMatchObject({ ok: true })
  })

  it('counts the topics of one direction over all channels', () => {
    const channels = [subscribeChannel('x/{a}', { a: values }), subscribeChannel('y/{a}', { a: values })]
    expect(deriveTopics({ channels, filters: [], maxTopics: 80 })).toMatchObject({ ok: true })
    expect(deriveTopics({ channels, filters: [], maxTopics: 79 })).toMatchObject({
      ok: false,
      problem: 'The channels give more than 79 subscribe topics: narrow them with filters.',
    })
  })
})

describe('directions', () => {
  it('keeps publish and subscribe apart and gives a channel with both to both', () => {
    const channel = (name: string, clientMayPublish: boolean, clientMaySubscribe: boolean): Channel => ({
      name,
      clientMayPublish,
      clientMaySubscribe,
      parameterEnums: {},
    })
    const channels = [
      channel('c', true, true),
      channel('b', false, true),
      channel('a', true, false),
      channel('d', false, false),
    ]
    expect(deriveTopics({ channels, filters: [], maxTopics: 10 })).toEqual({
      ok: true,
      publish: ['a', 'c'],
      subscribe: ['b', 'c'],
      warnings: [],
    })
  })
})

describe('filter values', () => {
  it.each([
    ['a value of 128 characters', 'x'.repeat(128), null],
    ['a value of 129 characters', 'x'.repeat(129), 'has 129 characters, 128 are allowed'],
    ['a trailing star', 'x*', null],
    ['two trailing stars', 'x**', 'contains `*` before its end'],
    ['a slash', 'x/y', 'contains `/`'],
  ])('%s', (_, value, problem) => {
    expect(filterValueProblem(value)).toBe(problem)
  })
})

describe('topicCovers', () => {
  it.each([
    ['a/*', 'a/b', true],
    ['a/*', 'a/b*', true],
    ['a/b*', 'a/b', true],
    ['a/b*', 'a/*', false],
    ['a/b', 'a/b*', false],
    ['a/*', 'a/b/c', false],
    ['*', 'a/b', false],
  ])('%s covers %s: %s', (wide, narrow, covers) => {
    expect(topicCovers(wide, narrow)).toBe(covers)
  })
})
