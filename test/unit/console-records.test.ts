import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { differencePage } from '../../src/http/console/difference-page.ts'
import { driftChart, scaleOf } from '../../src/http/console/drift-chart.ts'
import { timeline } from '../../src/http/console/drift-timeline.ts'
import { mainPart, type Page } from '../../src/http/console/page.ts'
import { planPage } from '../../src/http/console/plan-page.ts'
import { stepLines } from '../../src/http/console/plan-steps.ts'
import { comparison } from '../../src/http/console/record-parts.ts'
import { cursorOf, pageOf, parseCursor, parseNumericCursor } from '../../src/http/console/record-queries.ts'
import { runPage } from '../../src/http/console/run-page.ts'
import { precise } from '../../src/http/console/runs-table.ts'
import type { SweepProgress } from '../../src/reconcile/sweep.ts'
import type { DriftBucket } from '../../src/store/drift-chart.ts'
import type { RunView } from '../../src/store/runs-view.ts'
import { difference, NOW_MS, pagesWith, plan, run } from '../helpers/console-records.ts'

const textOf = (part: unknown): string => String(part)
const shown = (page: Page): string => textOf(mainPart(page))
/** The words of a page, as they are read. */
const words = (markup: string): string =>
  markup
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()

/** Tags with the names of their attributes: what a text must not change. */
const skeleton = (markup: string): readonly string[] =>
  [...markup.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replaceAll(/"[^"]*"/g, '""'))

const hostile = fc.string({
  unit: fc.constantFrom('<', '>', '"', "'", '&', '/', '=', ' ', '{', '$', 'a', 'é', ';', '-'),
  minLength: 1,
  maxLength: 30,
})

describe('pages about records and the catalogue', () => {
  it('never let a text become markup, whatever it is and wherever it comes from', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const harmless = pagesWith(text.replaceAll(/[<>"'&]/g, 'x'))
        for (const [name, page] of Object.entries(pagesWith(text))) {
          const expected = harmless[name]
          if (expected === undefined) throw new Error(name)
          expect(skeleton(shown(page)), name).toEqual(skeleton(shown(expected)))
        }
      }),
      { numRuns: 60 },
    )
  })

  it.each(Object.entries(pagesWith('some text')))(
    'have one heading and neither styles nor scripts of their own: %s',
    (_name, page) => {
      const tags = skeleton(shown(page))
      expect(tags.filter((tag) => /\sstyle|\son[a-z]+=|<script|<style/.test(tag))).toEqual([])
      expect(tags.filter((tag) => tag.startsWith('<h1'))).toHaveLength(1)
      const ids = [...shown(page).matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
      expect(ids).toEqual([...new Set(ids)])
    },
  )
})

const bucket = (index: number, detected: number, repaired: number): DriftBucket => ({
  fromMs: Date.parse('2026-03-09T13:00:00Z') + index * 3_600_000,
  detected,
  repaired,
})
const chartOf = (buckets: readonly DriftBucket[]): string =>
  textOf(driftChart({ span: '24h', buckets, pathOf: ({ fromMs }) => `/here?from=${fromMs}`, chosenFromMs: null }))

describe('the chart of drift', () => {
  it('draws what was detected upwards and what was repaired downwards, to one scale', () => {
    const chart = chartOf([bucket(0, 10, 5), bucket(1, 0, 0)])
    const bars = [...chart.matchAll(/<rect class="bar-(\w+)" x="[\d.]+" y="(\d+)" width="7" height="(\d+)"/g)]
    expect(bars.map(([, which, y, height]) => [which, y, height])).toEqual([
      ['detected', '1', '99'],
      ['repaired', '100', '50'],
    ])
  })

  it('draws even one of many', () => {
    expect(chartOf([bucket(0, 1, 0), bucket(1, 5000, 0)])).toContain('height="3"')
  })

  it('says the same in words and as a table with links', () => {
    const chart = chartOf([bucket(0, 10, 5), bucket(1, 0, 0), bucket(2, 1, 1)])
    expect(words(chart)).toContain(
      'In the last 24 hours 11 differences were detected, most of them (10) between 13:00 and 14:00 UTC; 6 were repaired or gone.',
    )
    const table = chart.slice(chart.indexOf('<table'))
    expect(words(table)).toContain('9 Mar, 15:00 to 16:00 1 1 9 Mar, 13:00 to 14:00 10 5')
    expect(table).toContain(`<a href="/here?from=${bucket(0, 0, 0).fromMs}">`)
  })

  it('is silent when nothing drifted', () => {
    expect(words(chartOf([bucket(0, 0, 0)]))).toContain('In the last 24 hours nothing drifted.')
  })

  it('has a scale that no bar is above and that is easy to read', () => {
    expect([0, 1, 2, 3, 7, 10, 11, 99, 101, 4999].map((count) => scaleOf([bucket(0, count, 0)]))).toEqual([
      1, 1, 2, 5, 10, 10, 20, 100, 200, 5000,
    ])
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.nat(1_000_000), (detected, repaired) => {
        const most = Math.max(1, detected, repaired)
        const scale = scaleOf([bucket(0, detected, repaired)])
        expect(scale).toBeGreaterThanOrEqual(most)
        expect(scale).toBeLessThanOrEqual(most * 2.5)
      }),
    )
  })
})

describe('a difference', () => {
  it.each([
    ['an attribute', { before: { owner: 'them' }, after: { owner: 'us' } }, 'owner them us'],
    ['an attribute that was not set', { before: { owner: null }, after: { owner: 'us' } }, 'owner not set us'],
    [
      'members',
      { before: { subscriptions: ['a/>'] }, after: { subscriptions: ['b', 'c'] } },
      'subscriptions a/&gt; added there b c missing there',
    ],
    ['an object that was gone', { kind: 'missing', before: {}, after: { owner: 'us' } }, 'owner gone us'],
    ['what does not differ', { before: { enabled: true }, after: { enabled: true } }, 'enabled true the same'],
    [
      'logins',
      {
        kind: 'password',
        before: { 'login over mqtt': 'rejected' },
        after: { 'login over mqtt': 'accepted', 'login over smf': 'accepted' },
      },
      'What Before After the password was written again login over mqtt rejected accepted login over smf not known accepted',
    ],
    ['nothing', { before: {}, after: {} }, 'There is nothing to compare.'],
  ])('shows %s before and after, side by side', (_what, changes, expected) => {
    expect(words(textOf(comparison(difference(changes))))).toContain(expected)
  })

  it.each([
    ['repaired', { action: 'repaired', repairedAtMs: NOW_MS }, 'repaired'],
    ['seen no more by a later run', { action: 'held', repairedAtMs: NOW_MS }, 'gone'],
    ['held back', { action: 'held' }, 'held back'],
    ['not repaired for an error', { action: 'failed' }, 'repair failed'],
    ['only reported', { action: 'reported' }, 'open'],
  ])('that was %s says so', (_what, changes, expected) => {
    const entry = textOf(timeline([difference(changes)], NOW_MS))
    expect(words(entry.slice(entry.indexOf('entry-outcome')))).toMatch(new RegExp(`^entry-outcome"> ?${expected}`))
  })

  it('that is open lets an administrator adopt a foreign object, and tells all others why they cannot', () => {
    const conflict = difference({ kind: 'conflict', reason: 'foreign-username', objectKind: 'clientUsername' })
    const page = { difference: conflict, nowMs: NOW_MS, offBecause: null }
    expect(shown(differencePage({ ...page, isAdministrator: true }))).toContain('action="/console/drift/7/adopt"')
    const reader = shown(differencePage({ ...page, isAdministrator: false }))
    expect(reader).not.toContain('<form')
    expect(reader).toContain('Only an administrator of the account may do this.')
    const settled = { ...page, difference: { ...conflict, repairedAtMs: NOW_MS } }
    expect(shown(differencePage({ ...settled, isAdministrator: true }))).not.toContain('<form')
  })
})

describe('steps', () => {
  it('say their reason once where it stays the same, and are shown as they are when they were cut short', () => {
    const lines = [
      '+ create queue q (not-created-yet)',
      '+ queue q: add subscription a (b) (not-created-yet)',
      '~ update qu…',
    ]
    expect(words(textOf(stepLines(lines)))).toBe(
      '+ Adds: Create queue q The object is wanted and was never created. + Adds: Queue q: add subscription a (b) ~ update qu…',
    )
  })
})

describe('a sweep', () => {
  const pageOfSweep = (changes: Partial<RunView>, progress: SweepProgress | null): string => {
    const sweep = run({ kind: 'sweep', registrationId: null, ...changes })
    const lists = { differences: [], moreDifferences: false, during: [], moreDuring: false }
    return shown(runPage({ run: sweep, ...lists, progress, nowMs: NOW_MS, isAdministrator: true, offBecause: null }))
  }

  it.each<[string, Partial<RunView>, SweepProgress | null, string]>([
    ['has begun', { finishedAtMs: null }, null, 'It has just begun.'],
    [
      'is under way',
      { finishedAtMs: null },
      { phase: 'reading the broker', done: 1200 },
      'It reads the broker: 1,200 objects so far.',
    ],
    ['was cut off', {}, null, 'It ended before it could say.'],
    ['is over', { detail: { objectsRead: 7, changed: 'odd' } }, null, 'Objects read 7 '],
  ])('that %s says so', (_what, changes, progress, expected) => {
    expect(words(pageOfSweep(changes, progress))).toContain(expected)
  })

  it('is read again while it is under way', () => {
    expect(pageOfSweep({ finishedAtMs: null }, null)).toContain('data-live')
    expect(pageOfSweep({}, null)).not.toContain('data-live')
  })
})

describe('a plan', () => {
  const disruptive = {
    action: { type: 'delete', kind: 'queue', name: 'q', reason: 'changed-in-catalogue' },
    disruptive: true,
    decision: 'held',
  } as const
  const pageOfPlans = (plans: readonly ReturnType<typeof plan>[], offBecause: string | null = null): string =>
    shown(
      planPage({
        query: { broker: 'broker-1' },
        brokers: [],
        found: { plans, complete: true, failures: [] },
        nowMs: NOW_MS,
        isAdministrator: true,
        offBecause,
      }),
    )

  it('offers to approve only what would drop live clients, and withdrawals only where they were refused', () => {
    expect(pageOfPlans([plan({ steps: [{ ...disruptive, decision: 'run' }] })])).not.toContain('id="approve"')
    expect(pageOfPlans([plan({ steps: [disruptive] })])).toContain('name="disruptive" value="1"')
    expect(pageOfPlans([plan({ steps: [disruptive] })])).not.toContain('confirm-withdrawals')
    const refused = { reason: 'too-many-withdrawals', message: 'too many' } as const
    expect(pageOfPlans([plan({ refused })])).toContain('action="/console/plan/confirm-withdrawals"')
  })

  it('says why nothing can be done', () => {
    expect(pageOfPlans([])).toContain('There is nothing to do.')
    expect(pageOfPlans([])).not.toContain('method="post"')
    expect(pageOfPlans([plan({ steps: [disruptive] })], 'Broker broker-1 is paused; resume it first.')).toContain(
      'Broker broker-1 is paused; resume it first.',
    )
  })
})

describe('lists', () => {
  it('go on where a cursor says, and refuse what is none', () => {
    fc.assert(
      fc.property(fc.nat(8e15), fc.nat(Number.MAX_SAFE_INTEGER), (atMs, id) => {
        expect(parseNumericCursor(cursorOf(atMs, id))).toEqual({ atMs, id })
      }),
    )
    expect(parseCursor(cursorOf(5, 'a_b'))).toEqual({ atMs: 5, id: 'a_b' })
    expect(parseCursor(undefined)).toBeNull()
    for (const text of ['x', '5', '_5', '-1_5', '9999999999999999_5'])
      expect(() => parseCursor(text)).toThrow('first page')
    for (const text of ['5_x', '5_1.5', '5_99999999999999999999']) {
      expect(() => parseNumericCursor(text)).toThrow('first page')
    }
  })

  it('have a next page only when there is more', () => {
    expect(pageOf([1, 2, 3], 2)).toEqual({ shown: [1, 2], last: 2 })
    expect(pageOf([1, 2], 2)).toEqual({ shown: [1, 2], last: null })
  })
})

it('tells how long something took as precisely as matters', () => {
  expect([0, 240, 3210, 125_000].map(precise)).toEqual(['0 ms', '240 ms', '3.2 s', '2 min 5 s'])
})
