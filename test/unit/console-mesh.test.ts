import { describe, expect, it } from 'vitest'
import { accountId } from '../../src/domain/ids.ts'
import { actionButton } from '../../src/http/console/action-button.ts'
import { type BrokerFigures, protocolInWords, standingOf, sumsBar } from '../../src/http/console/broker-figures.ts'
import { brokerPage } from '../../src/http/console/broker-page.ts'
import { meshPage } from '../../src/http/console/mesh-page.ts'
import { layout, type Page } from '../../src/http/console/page.ts'
import { registrationPage } from '../../src/http/console/registration-page.ts'
import { registrationsPage } from '../../src/http/console/registrations-page.ts'
import { remembered } from '../../src/http/console/remembered.ts'
import { accountPage, signInPage } from '../../src/http/console/sign-in-page.ts'
import type { MeshBroker } from '../../src/store/mesh-view.ts'
import { NO_REGISTRATIONS, NO_SUMS, type RegistrationSums } from '../../src/store/registration-sums.ts'
import { NOW_MS } from '../helpers/sample.ts'

const BROKER: MeshBroker = {
  brokerId: 'vienna',
  name: 'Vienna',
  eventMeshId: 'rail',
  managed: true,
  reachable: true,
  checkedAtMs: NOW_MS,
  sempVersion: '2.49',
  paused: false,
  errorCode: null,
  error: null,
  restsUntilMs: null,
  lookalikes: null,
  sweep: { outcome: 'done', startedAtMs: NOW_MS, finishedAtMs: NOW_MS, progress: null },
  protocols: ['smfs', 'secure-mqtt'],
}

const sums = (registrations: Partial<RegistrationSums>) => ({
  ...NO_SUMS,
  registrations: { ...NO_REGISTRATIONS, ...registrations },
})

const figures = (changes: Partial<BrokerFigures> = {}, broker: Partial<MeshBroker> = {}): BrokerFigures => ({
  broker: { ...BROKER, ...broker },
  accountPaused: false,
  sums: sums({ total: 3, inSync: 3 }),
  logins: new Map(),
  queue: null,
  ...changes,
})

describe('a broker', () => {
  it.each<readonly [words: string, figures: BrokerFigures]>([
    ['in sync', figures()],
    ['unreachable', figures({ sums: sums({ total: 3, error: 3 }) }, { reachable: false })],
    ['error', figures({ sums: sums({ total: 3, inSync: 1, lagging: 1, conflict: 1 }) })],
    ['drifted', figures({ sums: sums({ total: 3, inSync: 1, lagging: 1, drifted: 1 }) })],
    ['drifted', figures({ sums: sums({ total: 3, inSync: 2, held: 1 }) })],
    ['lagging', figures({ sums: sums({ total: 3, inSync: 2, lagging: 1 }) })],
    ['paused', figures({ sums: sums({ total: 3, lagging: 3 }) }, { paused: true })],
    ['paused', figures({ accountPaused: true })],
    ['not managed', figures({}, { managed: false, reachable: null })],
    ['not tried yet', figures({}, { reachable: null })],
    ['no registrations', figures({ sums: NO_SUMS })],
    ['counting', figures({ sums: null })],
  ])('is %s', (words, given) => {
    expect(standingOf(given).words).toBe(words)
  })

  it('shows what is rare beside much as wide as one can see', () => {
    const bar = String(sumsBar({ ...NO_REGISTRATIONS, total: 100_000, inSync: 99_999, error: 1 }))
    expect(bar).toContain('aria-label="99,999 in sync, 1 in error"')
    expect(bar).toMatch(/fill-bad" x="98.52%" width="1.48%"/)
  })

  it('says of a protocol that takes any password that nothing is proved', () => {
    const logins = { accepted: 5, rejected: 0, notVerified: 0, acceptsAnything: true }
    expect(protocolInWords(logins)).toBe('accepts any password, so nothing is proved')
    expect(protocolInWords({ ...logins, acceptsAnything: false, rejected: 1 })).toBe('1 login rejected, 5 accepted')
  })

  it('shows how far a sweep that runs has come', async () => {
    const sweep = { outcome: 'running', startedAtMs: NOW_MS, finishedAtMs: null }
    const progress = { phase: 'reconciling', done: 2 } as const
    const html = await mesh(figures({}, { sweep: { ...sweep, progress } }))
    expect(html).toContain('reconciling, 2 done <progress value="2" max="3"')
  })
})

const text = async (page: Page): Promise<string> => {
  const assets = { style: '/s', script: '/j', icon: '/i' }
  const viewer = { userName: 'ada', accountName: 'default', isAdministrator: true }
  return String(await layout(page, { viewer, notice: null, assets }))
}

function mesh({ broker, sums: counted, accountPaused }: BrokerFigures, isAdministrator = true): Promise<string> {
  const eventMeshes = [{ id: 'rail', name: broker.name, brokers: [broker] }]
  return text(
    meshPage({
      mesh: { paused: accountPaused, environments: [{ id: 'prod', name: broker.name, eventMeshes }], unplaced: [] },
      figures: { registrations: new Map([[broker.brokerId, counted ?? NO_SUMS]]), logins: new Map(), queues: null },
      waiting: 0,
      nowMs: NOW_MS,
      isAdministrator,
    }),
  )
}

const EVIL = `<img src=x onerror="alert(1)">'`

describe('no text becomes markup', () => {
  const broker = { name: EVIL, error: EVIL, reachable: false, sempVersion: EVIL }
  const lookalikes = { count: 1, growing: true, examples: [EVIL] }
  const reasons = [{ reason: EVIL, count: 1 }]
  const evil = figures({ sums: { ...sums({ total: 1, error: 1 }), reasons } }, { ...broker, lookalikes })
  const registration = {
    name: EVIL,
    source: EVIL,
    sourceOwner: EVIL,
    applicationDomainId: EVIL,
    filters: { [EVIL]: [EVIL] },
    attributes: [{ name: EVIL, value: EVIL }],
  }
  const request = {
    registrationId: EVIL,
    registrationName: EVIL,
    accessRequestId: EVIL,
    productId: EVIL,
    productName: EVIL,
    productVersion: EVIL,
    planId: EVIL,
    state: 'PENDING_APPROVAL',
    reason: EVIL,
    createdTime: NOW_MS,
    explanation: EVIL,
  } as const
  const credential = {
    name: EVIL,
    consumerKey: EVIL,
    version: 1,
    issuedAtMs: NOW_MS,
    expiresAtMs: null,
    retiredAtMs: null,
  }
  const seen = { nowMs: NOW_MS, isAdministrator: true }
  const roles = ['administrator'] as const

  it.each<readonly [name: string, page: () => Promise<string>]>([
    ['mesh', () => mesh(evil)],
    ['broker', () => text(brokerPage({ figures: evil, place: EVIL, astray: { pairs: [], count: 0 }, ...seen }))],
    [
      'registrations',
      () =>
        text(
          registrationsPage({
            query: { search: EVIL, broker: EVIL, page: 1 },
            brokers: [{ id: EVIL, name: EVIL }],
            registrations: [
              {
                registrationId: EVIL,
                name: EVIL,
                source: EVIL,
                sourceOwner: EVIL,
                credentials: 1,
                accessRequests: 1,
                waiting: 1,
                failing: 1,
                brokers: 1,
                astray: 1,
                paused: true,
              },
            ],
            count: 1000,
            pageSize: 50,
          }),
        ),
    ],
    [
      'registration',
      () =>
        text(
          registrationPage({
            registrationId: EVIL,
            registration,
            brokers: [],
            accessRequests: [request],
            credentials: [credential],
            history: [],
            isPaused: false,
            ...seen,
          }),
        ),
    ],
    ['sign-in', () => text(signInPage({ next: EVIL, userName: EVIL, problem: EVIL }))],
    ['account', () => text(accountPage(EVIL, [{ accountId: accountId('a'), accountName: EVIL, roles }]))],
  ])('on the page %s', async (_name, page) => {
    const html = await page()
    expect(html).toContain('&lt;img')
    expect(html).not.toContain('<img')
    expect(html).not.toContain(`"alert(1)"`)
  })
})

describe('a button', () => {
  it('that is off says why, and is no form', () => {
    const html = String(actionButton({ id: 'pause', label: 'Pause', path: '/p', offBecause: 'It is paused.' }))
    expect(html).toContain('aria-disabled="true" aria-describedby="pause-why"')
    expect(html).toContain('id="pause-why">It is paused.')
    expect(html).not.toContain('<form')
  })

  it('is not there for who may not press it', async () => {
    const html = await mesh(figures(), false)
    expect(html).toContain('Only an administrator of the account may reconcile or pause.')
    expect(html).not.toContain('action="/console/pause"')
  })
})

describe('what is remembered', () => {
  const open = (tookMs: number) => {
    const state = { nowMs: 1000, made: 0 }
    const figures = remembered({
      make: async () => {
        state.nowMs += tookMs
        state.made += 1
        return state.made
      },
      now: () => state.nowMs,
      onError: () => undefined,
    })
    return { state, figures }
  }

  it('is fresh for twenty times as long as it took', async () => {
    const { state, figures } = open(10)
    expect(await figures.read('a')).toBe(1)
    state.nowMs += 199
    expect(await figures.read('a')).toBe(1)
    state.nowMs += 1
    expect(await figures.read('a')).toBe(2)
  })

  it('is old for the time that a new answer takes, and not known before the first', async () => {
    const waiting: ((value: number) => void)[] = []
    const state = { nowMs: 0 }
    const figures = remembered({
      make: () => new Promise<number>((resolve) => waiting.push(resolve)),
      now: () => state.nowMs,
      waitMs: 1,
      onError: () => undefined,
    })
    expect(await figures.read('a')).toBeNull()
    waiting[0]?.(1)
    await figures.idle()
    state.nowMs = 1000
    expect(await figures.read('a')).toBe(1)
    expect(waiting).toHaveLength(2)
    expect(await figures.read('a')).toBe(1)
    expect(waiting).toHaveLength(2)
    waiting[1]?.(2)
    await figures.idle()
    expect(await figures.read('a')).toBe(2)
  })

  it('is not known when it cannot be made, and is tried again', async () => {
    const errors: unknown[] = []
    const answers = [Promise.reject(new Error('away')), Promise.resolve(7)]
    const figures = remembered({
      make: () => answers.shift() ?? Promise.resolve(0),
      onError: (error) => errors.push(error),
    })
    expect(await figures.read('a')).toBeNull()
    expect(await figures.read('a')).toBe(7)
    expect(errors).toHaveLength(1)
  })
})
