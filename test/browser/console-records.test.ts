import { sql } from 'kysely'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleWorld, withConsole } from '../helpers/console.ts'
import { CHROMIUM, NO_CHROMIUM, openChromium } from './chromium.ts'
import { axeViolations, LOOKS, signedIn } from './looks.ts'

if (CHROMIUM === null) process.stderr.write(`skipped: ${NO_CHROMIUM}\n`)

describe.skipIf(CHROMIUM === null)('pages of drift, runs, plans and the catalogue in a browser', () => {
  let world: ConsoleWorld
  let browser: Browser
  const paths: Record<string, string> = {}

  beforeAll(async () => {
    world = await withConsole()
    browser = await openChromium()
    const { db } = world.mesh.context
    const idOf = async (query: ReturnType<typeof sql<{ id: string | number }>>): Promise<string> =>
      String((await query.execute(db)).rows[0]?.id)
    Object.assign(paths, {
      drift: '/console/drift',
      'drift of 30 days': '/console/drift?span=30d&kind=changed',
      conflict: `/console/drift/${await idOf(sql`select id from drift where kind = 'conflict'`)}`,
      runs: '/console/runs',
      run: `/console/runs/${await idOf(sql`select id from runs where drift = 1`)}`,
      sweep: `/console/runs/${await idOf(sql`select id from runs where kind = 'sweep'`)}`,
      plan: '/console/plan?broker=south',
      catalogue: '/console/catalogue',
      product: '/console/catalogue/products/trackCondition',
      'Event APIs': '/console/catalogue/event-apis',
      'Event API': `/console/catalogue/event-apis/${await idOf(sql`select id from event_apis`)}`,
    })
    const { queues } = world.mesh.broker(2).state
    for (const name of queues.names()) queues.change(name, { accessType: 'non-exclusive', maxTtl: 5 })
  }, 90_000)
  afterAll(async () => {
    await browser?.close()
    await world?.[Symbol.asyncDispose]()
  })

  const open = async (page: Page, path: string): Promise<void> => {
    const problems: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text())
    })
    page.on('pageerror', (error) => problems.push(error.message))
    const answer = await page.goto(path)
    expect(answer?.status(), path).toBe(200)
    for (const details of await page.locator('details > summary').all()) await details.click()
    expect(problems, path).toEqual([])
  }

  it.each(LOOKS)(
    'are as axe wants them and fit in the window: $name',
    async (look) => {
      const context = await signedIn(browser, { url: world.url, session: world.adminSession, look })
      const page = await context.newPage()
      const found: string[] = []
      for (const [name, path] of Object.entries(paths)) {
        await open(page, path)
        found.push(...(await axeViolations(page)).map((line) => `${name}: ${line}`))
        const width = Number(await page.evaluate('document.documentElement.scrollWidth'))
        if (width > look.width) found.push(`${name}: is ${width} wide`)
      }
      expect(found).toEqual([])
      await context.close()
    },
    120_000,
  )

  it('approve a plan by keyboard, after a question', async () => {
    const [look] = LOOKS
    if (look === undefined) throw new Error('no look')
    const context = await signedIn(browser, { url: world.url, session: world.adminSession, look })
    const page = await context.newPage()
    await page.goto('/console/plan?broker=south')
    const button = page.getByRole('button', { name: 'Approve and reconcile' }).first()
    await button.focus()
    await page.keyboard.press('Enter')
    const question = page.getByRole('dialog', { name: 'Let live clients drop for broker south?' })
    await question.waitFor({ state: 'visible' })
    expect(await axeViolations(page)).toEqual([])
    await page.keyboard.press('Escape')
    await question.waitFor({ state: 'hidden' })
    expect(world.enqueued).toEqual([])
    await button.click()
    await question.getByRole('button', { name: 'Approve and reconcile' }).click()
    await page.getByText('1 sweep asked for').waitFor()
    expect(world.enqueued).toMatchObject([{ kind: 'sweep', what: { trigger: 'operator' } }])
    await context.close()
  })

  it('show new drift without being loaded again, and leave open what was opened', async () => {
    const [look] = LOOKS
    if (look === undefined) throw new Error('no look')
    const context = await signedIn(browser, { url: world.url, session: world.adminSession, look })
    const page = await context.newPage()
    await page.goto('/console/drift')
    await page.locator('.entry summary').first().click()
    await sql`
      insert into drift (account_id, broker_id, registration_id, object_kind, object_name, kind, reason, before, after, action,
        run_id, detected_at, last_seen_at)
      select account_id, broker_id, registration_id, object_kind, 'a-new-one', kind, reason, before, after, 'reported', run_id,
        now(), now() from drift where kind = 'missing'`.execute(world.mesh.context.db)
    await page.getByText('a-new-one').first().waitFor({ timeout: 15_000 })
    expect(await page.locator('.entry details[open]').count()).toBe(1)
    expect(await page.locator('.entry').nth(1).locator('details[open]').count()).toBe(1)
    await context.close()
  })
})
