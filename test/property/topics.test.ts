import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Channel } from '../../src/domain/catalogue.ts'
import type { Filters } from '../../src/domain/registration.ts'
import { topicCovers, topicProblem } from '../../src/domain/topic-pattern.ts'
import { deriveTopics } from '../../src/domain/topics.ts'

const PARAMETERS = ['p', 'q', 'r'] as const
const value = fc.constantFrom('x', 'y', 'xy', 'xyz', 'x*', 'xy*', '*')
const values = fc.array(value, { minLength: 1, maxLength: 3 })
const bindings: fc.Arbitrary<Filters> = fc
  .record({ p: values, q: values, r: values }, { requiredKeys: [] })
  .map((record) => ({ ...record }))
const part = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('a', 'b', 'x') },
  { weight: 3, arbitrary: fc.constantFrom(...PARAMETERS).map((name) => `{${name}}`) },
)
const level = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''))
const channel: fc.Arbitrary<Channel> = fc.record({
  name: fc.array(level, { minLength: 1, maxLength: 4 }).map((levels) => levels.join('/')),
  clientMayPublish: fc.boolean(),
  clientMaySubscribe: fc.boolean(),
  parameterEnums: bindings,
})
const channels = fc.array(channel, { maxLength: 4 })
const derive = (list: readonly Channel[], ...filters: readonly Filters[]) =>
  deriveTopics({ channels: list, filters, maxTopics: 10_000 })
const shuffled = <Item>(items: readonly Item[]) => fc.shuffledSubarray([...items], { minLength: items.length })

/** The widest form: what the channels give with every parameter unbound. */
const widest = (list: readonly Channel[]) => derive(list.map((one) => ({ ...one, parameterEnums: {} })))

function expectCovered(narrow: ReturnType<typeof derive>, wide: ReturnType<typeof derive>): void {
  if (!narrow.ok || !wide.ok) throw new Error('expected topics')
  for (const direction of ['publish', 'subscribe'] as const) {
    for (const topic of narrow[direction]) {
      expect(
        wide[direction].some((cover) => topicCovers(cover, topic)),
        `${topic} in ${wide[direction]}`,
      ).toBe(true)
    }
  }
}

describe('laws of topics', () => {
  it('gives only topics that the broker takes and never the wildcard of many levels', () => {
    fc.assert(
      fc.property(channels, bindings, bindings, (list, first, second) => {
        const result = derive(list, first, second)
        if (!result.ok) throw new Error(result.problem)
        for (const topic of [...result.publish, ...result.subscribe]) {
          expect(topic).not.toContain('>')
          expect(topicProblem(topic)).toBeNull()
        }
      }),
    )
  })

  it('refuses any text that would widen a topic, wherever it comes from', () => {
    const bad = fc
      .tuple(fc.string(), fc.constantFrom('>', '/', '!', '*x', '\u0000', '\u009f'), fc.string())
      .map((texts) => texts.join(''))
    fc.assert(
      fc.property(bad, (text) => {
        const one: Channel = { name: 'a/{p}', clientMayPublish: true, clientMaySubscribe: true, parameterEnums: {} }
        expect(derive([one], { p: [text] })).toMatchObject({ ok: false })
        expect(derive([{ ...one, parameterEnums: { p: [text] } }])).toMatchObject({ ok: false })
      }),
    )
  })

  it('stays inside the widest form', () => {
    fc.assert(
      fc.property(channels, bindings, bindings, (list, first, second) => {
        expectCovered(derive(list, first, second), widest(list))
      }),
    )
  })

  it('narrows with every binding: filters stay inside what the channels give without them', () => {
    fc.assert(
      fc.property(channels, bindings, (list, filters) => {
        expectCovered(derive(list, filters), derive(list))
      }),
      { numRuns: 1000 },
    )
  })

  it('narrows with every further binding', () => {
    fc.assert(
      fc.property(channels, bindings, fc.constantFrom(...PARAMETERS), values, (list, filters, parameter, more) => {
        fc.pre(filters[parameter] === undefined)
        expectCovered(derive(list, { ...filters, [parameter]: more }), derive(list, filters))
      }),
      { numRuns: 1000 },
    )
  })

  it('does not depend on the order of channels or values', () => {
    const both = channels.chain((list) => fc.tuple(fc.constant(list), shuffled(list)))
    fc.assert(
      fc.property(both, bindings, fc.integer({ min: 0, max: 30 }), ([list, other], filters, maxTopics) => {
        const reversed = Object.fromEntries(Object.entries(filters).map(([name, list]) => [name, list.toReversed()]))
        const before = deriveTopics({ channels: list, filters: [filters], maxTopics })
        expect(deriveTopics({ channels: other, filters: [reversed], maxTopics })).toEqual(before)
      }),
    )
  })
})
