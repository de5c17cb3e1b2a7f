import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../src/store/database.ts'
import { type ConsoleAnswer, type ConsoleWorld, withConsole } from '../helpers/console.ts'
import { findSecrets } from '../helpers/secret-scan.ts'
import { until } from '../helpers/service.ts'

/** What each test may change is asked for anew; the mesh and its history are made once. */
let world: ConsoleWorld
let db: Database
/** A session of another account. */
let stranger: string

beforeAll(async () => {
  world = await withConsole()
  db = world.mesh.context.db
  stranger = (await world.addUser({ name: 'eve', account: 'other' })).userToken
}, 60_000)
afterAll(() => world[Symbol.asyncDispose]())
beforeEach(() => {
  world.enqueued.length = 0
})

const words = ({ html }: ConsoleAnswer): string =>
  html
    .slice(html.indexOf('<main'))
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
const linksOf = ({ html }: ConsoleAnswer): readonly string[] =>
  [...html.matchAll(/href="([^"]+)"/g)].map(([, path = '']) => path.replaceAll('&amp;', '&'))
const entries = ({ html }: ConsoleAnswer): number => html.match(/class="entry"/g)?.length ?? 0
const idOf = async (query: ReturnType<typeof sql<{ id: string | number }>>): Promise<string> => {
  const [row] = (await query.execute(db)).rows
  if (row === undefined) throw new Error('there is none')
  return String(row.id)
}
const conflictId = () => idOf(sql`select id from drift where kind = 'conflict'`)
const noticeOf = ({ headers }: ConsoleAnswer): string => decodeURIComponent(String(headers['set-cookie']))

/** The chart may be counted beside the page, which shows it when it is read again. */
const driftPageWithChart = (path: string): Promise<ConsoleAnswer> =>
  until(path, async () => {
    const page = await world.page(path)
    return page.html.includes('class="chart"') ? page : null
  })

describe('the drift page', () => {
  it('shows the chart and what was before and after', async () => {
    const page = await driftPageWithChart('/console/drift')
    expect(words(page)).toContain('In the last 24 hours 4 differences were detected')
    expect(words(page)).toContain('Open now: conflict 1')
    expect(words(page)).toContain('ACL profile crew-app-harbour')
    expect(entries(page)).toBe(4)
  })

  it.each([
    ['broker=north', 2],
    ['broker=nowhere', 0],
    ['kind=missing', 1],
    ['kind=missing&broker=south', 0],
    ['registration=dispatch-console', 1],
    ['open=1', 1],
    ['open=1&kind=changed', 0],
    ['broker=&kind=&registration=&open=', 4],
  ])('is filtered by %s', async (query, count) => {
    const page = await world.page(`/console/drift?${query}`)
    expect(page.status).toBe(200)
    expect(entries(page)).toBe(count)
  })

  it('carries the filter in its links, and lists what was detected in an hour', async () => {
    const page = await driftPageWithChart('/console/drift?span=30d&kind=changed')
    // The table says only when something happened, the newest first.
    const [path] = linksOf({ ...page, html: page.html.slice(page.html.indexOf('<table')) })
    expect(path).toMatch(/^\/console\/drift\?kind=changed&span=30d&from=\d+$/)
    expect(entries(await world.page(path ?? ''))).toBe(2)
    expect(entries(await world.page('/console/drift?from=0'))).toBe(0)
  })

  it('goes on page by page', async () => {
    await sql`
      insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
        run_id, detected_at, last_seen_at, repaired_at)
      select account_id, broker_id, registration_id, object_kind, 'page-' || i, kind, reason, before, after, action, run_id,
        '2020-01-01', '2020-01-01', '2020-01-01'
      from drift, generate_series(1, 60) i where kind = 'missing'`.execute(db)
    try {
      const first = await world.page('/console/drift?broker=north')
      const path = linksOf(first).find((link) => link.includes('after='))
      const second = await world.page(path ?? '')
      expect([entries(first), entries(second)]).toEqual([50, 12])
      expect(path).toContain('broker=north')
      expect(second.html).not.toContain('data-live')
      expect(linksOf(second).some((link) => link.includes('after='))).toBe(false)
    } finally {
      await sql`delete from drift where object_name like 'page-%'`.execute(db)
    }
  })

  it.each(['kind=odd', 'span=1y', 'after=odd', 'after=5_x', 'from=soon', `registration=${'x'.repeat(300)}`])(
    'refuses %s with a page that says so',
    async (query) => {
      const page = await world.page(`/console/drift?${query}`)
      expect(page.status).toBe(400)
      expect(page.html).toContain('This cannot be understood')
    },
  )
})

describe('a difference', () => {
  it('that is a conflict is adopted by an administrator, and by nobody else', async () => {
    const path = `/console/drift/${await conflictId()}`
    expect((await world.post(`${path}/adopt`, {}, world.readerSession)).status).toBe(403)
    expect((await world.post(`${path}/adopt`, {}, stranger)).status).toBe(404)
    expect((await sql`select 1 from adoptions`.execute(db)).rows).toEqual([])
    const answer = await world.post(`${path}/adopt`)
    expect(answer).toMatchObject({ status: 303, headers: { location: path } })
    expect(noticeOf(answer)).toContain(
      'The client username legacy-dispatcher is ours with the next run on broker north.',
    )
    const adopted = await sql`select broker_id, kind, name, asked_by from adoptions`.execute(db)
    expect(adopted.rows).toEqual([
      { broker_id: 'north', kind: 'clientUsername', name: 'legacy-dispatcher', asked_by: 'admin' },
    ])
    const [recorded] = (
      await sql`select actor_name, subject, outcome from audit where action = 'object.adopt' order by id desc`.execute(
        db,
      )
    ).rows
    expect(recorded).toEqual({
      actor_name: 'admin',
      subject: 'clientUsername legacy-dispatcher on north',
      outcome: 'done',
    })
    await sql`delete from adoptions`.execute(db)
  })

  it('that is settled is not adopted', async () => {
    const id = await idOf(sql`select id from drift where kind = 'missing'`)
    expect((await world.post(`/console/drift/${id}/adopt`)).status).toBe(409)
    expect(words(await world.page(`/console/drift/${id}`))).toContain('It is settled.')
  })
})

describe('the pages of runs', () => {
  it('tell what ran, why, how it ended and what it changed', async () => {
    const runs = words(await world.page('/console/runs?broker=north'))
    expect(runs).toMatch(/dispatch-console on north just now the sweep conflict \d+ ms 8 writes, 1 conflict/)
    const sweeps = await world.page('/console/runs?kind=sweep&outcome=done&trigger=sweep')
    expect(words(sweeps)).toMatch(/Sweep on south just now the sweep done [\d.]+ m?s 2 registrations changed/)
    expect(words(await world.page('/console/runs?outcome=error'))).toContain('No run is on record here.')
  })

  it('show one run with its steps, its reasons and its differences', async () => {
    const id = await idOf(sql`select id from runs where registration_id = 'crew-app-harbour' and drift = 1`)
    const page = words(await world.page(`/console/runs/${id}`))
    expect(page).toMatch(/Removes: ACL profile crew-app-harbour: remove subscribe exception &gt; Somebody added this/)
    expect(page).toContain('Differences it found or repaired')
    expect(page).toContain('ACL profile crew-app-harbour')
  })

  it('show a sweep with what it read and what was done meanwhile', async () => {
    const id = await idOf(
      sql`select id from runs where kind = 'sweep' and broker_id = 'north' order by started_at desc`,
    )
    const page = words(await world.page(`/console/runs/${id}`))
    expect(page).toMatch(/Objects read \d+ Registrations compared in bulk \d+/)
    expect(page).toContain('northern-departure-boards on north')
    expect(page).not.toContain('on south')
  })
})

describe('the plan page', () => {
  const spoil = (): void => {
    const { queues } = world.mesh.broker(2).state
    const [name = ''] = queues.names().filter((each) => each.startsWith('keymesh-'))
    queues.change(name, { accessType: 'non-exclusive' })
  }

  it('reads a broker only when it is chosen', async () => {
    expect(words(await world.page('/console/plan'))).toContain('Choose a broker, or give a registration.')
    expect(words(await world.page('/console/plan?broker=central'))).toContain('Nothing to do: broker central')
    expect((await world.page('/console/plan?broker=nowhere')).status).toBe(404)
    expect((await world.page('/console/plan?registration=nobody')).status).toBe(404)
  })

  it('shows what would be written, and lets an administrator approve that live clients drop', async () => {
    spoil()
    const page = await world.page('/console/plan?broker=south')
    expect(words(page)).toMatch(/accessType non-exclusive → to exclusive drops live clients held back/)
    expect((await world.page('/console/plan?broker=south', world.readerSession)).html).not.toContain(
      'id="approve-question"',
    )
    const fields = { broker: 'south', disruptive: '1', back: '/console/plan?broker=south' }
    expect((await world.post('/console/plan/reconcile', fields, world.readerSession)).status).toBe(403)
    expect(world.enqueued).toEqual([])
    const answer = await world.post('/console/plan/reconcile', fields)
    expect(answer).toMatchObject({ status: 303, headers: { location: '/console/plan?broker=south' } })
    expect(noticeOf(answer)).toContain('1 sweep asked for')
    expect(world.enqueued).toMatchObject([{ kind: 'sweep', what: { trigger: 'operator' } }])
  })

  it('asks for the runs of one registration, and goes nowhere but to the console', async () => {
    const fields = { registration: 'dispatch-console', broker: 'north', back: 'https://elsewhere.example/console' }
    const answer = await world.post('/console/plan/reconcile', fields)
    expect(answer).toMatchObject({ status: 303, headers: { location: '/console' } })
    expect(world.enqueued).toMatchObject([
      { kind: 'pairs', what: { pairs: [{ registrationId: 'dispatch-console', brokerId: 'north' }] } },
    ])
  })

  it('confirms withdrawals that were refused', async () => {
    const where = sql`registration_id = 'dispatch-console' and broker_id = 'central'`
    await sql`update pairs set state = 'refused' where ${where}`.execute(db)
    const answer = await world.post('/console/plan/confirm-withdrawals', { broker: 'central', back: '/console/runs' })
    expect(answer).toMatchObject({ status: 303, headers: { location: '/console/runs' } })
    expect(world.enqueued).toMatchObject([{ kind: 'pairs', what: { pairs: [{ brokerId: 'central' }] } }])
    const undone = sql`update pairs set state = 'in-sync', withdrawal_confirmed = false, due_at = null where ${where}`
    await undone.execute(db)
  })

  it('says that a paused broker does nothing', async () => {
    await sql`update broker_status set paused = true where broker_id = 'south'`.execute(db)
    const page = await world.page('/console/plan?broker=south')
    await sql`update broker_status set paused = false`.execute(db)
    expect(words(page)).toContain('Broker south is paused; resume it first.')
  })
})

describe('the catalogue', () => {
  it('shows products, and why one is not visible', async () => {
    const page = words(await world.page('/console/catalogue'))
    expect(page).toMatch(/Crew planning crewPlanning 1.0.0 released visible Duty roster 1 1/)
    expect(page).toMatch(
      /Track condition trackCondition 0.1.0 draft not visible The product is not shared. And 2 more reasons./,
    )
    const product = words(await world.page('/console/catalogue/products/trackCondition'))
    expect(product).toContain('Fails: The product is not shared. Set shared: true on the product.')
    expect(product).toContain('Holds: The version has the plans Trial.')
  })

  it.each([
    ['shown=visible', ['crewPlanning', 'freightPaths', 'liveTrainData', 'stationServices']],
    ['shown=hidden', ['trackCondition']],
    ['search=TRAIN', ['liveTrainData']],
    ['search=%25', []],
    ['after=liveTrainData', ['stationServices', 'trackCondition']],
  ])('is filtered by %s', async (query, ids) => {
    const shown = linksOf(await world.page(`/console/catalogue?${query}`)).flatMap(
      (link) => link.split('/console/catalogue/products/')[1] ?? [],
    )
    expect(shown).toEqual(ids)
  })

  it('shows Event APIs with what clients may do', async () => {
    const [path = ''] = linksOf(await world.page('/console/catalogue/event-apis')).filter((link) => link.includes('#v'))
    const page = words(await world.page(path.split('#')[0] ?? ''))
    expect(page).toMatch(/Clients may .*(publish|subscribe)/)
    expect(page).toContain('In product versions')
    const [document = ''] = linksOf(await world.page(path.split('#')[0] ?? '')).filter((link) =>
      link.includes('/documents/'),
    )
    const answer = await world.page(document)
    expect(answer.headers).toMatchObject({ 'content-disposition': 'attachment; filename="crewDuties-1.0.0.json"' })
    expect(JSON.parse(answer.html)).toMatchObject({ asyncapi: expect.stringMatching(/^2\./) })
    expect((await world.page(document, stranger)).status).toBe(404)
    expect((await world.page('/console/catalogue/event-apis/nothing')).status).toBe(404)
    expect((await world.page('/console/catalogue/event-apis?after=odd')).status).toBe(400)
  })
})

describe('every page', () => {
  const paths = async (): Promise<readonly string[]> => {
    const lists = ['/console/drift', '/console/runs', '/console/catalogue', '/console/catalogue/event-apis']
    const found = await Promise.all(lists.map(async (path) => linksOf(await world.page(path))))
    const own = /^\/console\/(drift|runs|catalogue)\/[^?#]+/
    return [
      ...lists,
      '/console/plan?broker=south',
      ...new Set(found.flat().flatMap((link) => own.exec(link)?.[0] ?? [])),
    ]
  }

  it('answers, and holds no secret', async () => {
    const secrets = await world.mesh.secrets()
    expect(secrets.size).toBeGreaterThan(5)
    const all = await paths()
    expect(all.length).toBeGreaterThan(30)
    const answers = new Map<string, string>()
    for (const path of all) {
      const page = await world.page(path, path.length % 2 === 0 ? world.readerSession : undefined)
      expect(page.status, path).toBe(200)
      answers.set(path, page.html)
    }
    expect(findSecrets(secrets, answers)).toEqual([])
  })

  it('is of one account', async () => {
    for (const path of await paths()) {
      const page = await world.page(path, stranger)
      const isList = /^\/console\/(drift|runs|catalogue|catalogue\/event-apis)$/.test(path)
      expect(page.status, path).toBe(isList ? 200 : 404)
      if (isList) expect(words(page), path).not.toMatch(/north|central|south|harbour|train/i)
    }
    const fields = { broker: 'south', registration: 'dispatch-console', back: '/console/runs' }
    expect((await world.post('/console/plan/reconcile', fields, stranger)).status).toBe(404)
    expect((await world.post('/console/plan/confirm-withdrawals', fields, stranger)).status).toBe(404)
    expect(world.enqueued).toEqual([])
  })
})
