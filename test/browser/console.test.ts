import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SESSION_COOKIE } from '../../src/http/authentication.ts'
import { setBrokerPaused } from '../../src/store/pause.ts'
import { type ConsoleWorld, withConsole } from '../helpers/console.ts'
import { TEST_PASSWORD } from '../helpers/http.ts'
import { CHROMIUM, NO_CHROMIUM, openChromium } from './chromium.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const DESKTOP = { width: 1280, height: 800 }
const PHONE = { width: 360, height: 740 }
const PENDING = '/console/registrations/crew-app-junction'
/** A page is read again after three seconds; a busy machine takes its time. */
const WITHIN_MS = 20_000

const PAGES = [
  '/console',
  '/console/brokers/north',
  '/console/registrations',
  '/console/registrations?search=crew',
  '/console/registrations/dispatch-console',
  PENDING,
  '/console/drift',
  '/console/runs',
  '/console/plan?broker=north',
  '/console/catalogue',
  '/console/catalogue/products/liveTrainData',
  '/console/nowhere',
] as const

let world: ConsoleWorld
let browser: Browser

interface Visit {
  readonly page: Page
  readonly context: BrowserContext
  /** What the browser complained of: errors of scripts, and what the content security policy refused. */
  readonly complaints: readonly string[]
}

async function visit(path: string, options: { readonly scheme?: 'light' | 'dark'; readonly phone?: boolean } = {}) {
  const { scheme = 'light', phone = false } = options
  const context = await browser.newContext({
    baseURL: world.url,
    colorScheme: scheme,
    viewport: phone ? PHONE : DESKTOP,
  })
  await context.addCookies([{ name: SESSION_COOKIE, value: world.adminSession, url: `${world.url}/console` }])
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('404')) complaints.push(message.text())
  })
  await page.goto(path)
  return { page, context, complaints } satisfies Visit
}

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE)
  const found = (await page.evaluate('axe.run({ resultTypes: ["violations"] })')) as {
    readonly violations: readonly Violation[]
  }
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  )
}

/** What has the focus: its text, or the value of its name. */
const focused = (page: Page): Promise<string> =>
  page.evaluate('document.activeElement.textContent.trim() || document.activeElement.name || ""')

if (CHROMIUM === null) process.stderr.write(`tests in a browser are skipped: it ${NO_CHROMIUM}\n`)

describe.skipIf(CHROMIUM === null)('in chromium, the console', () => {
  beforeAll(async () => {
    ;[world, browser] = await Promise.all([withConsole(), openChromium()])
  }, 90_000)
  afterAll(async () => {
    await browser?.close()
    await world?.[Symbol.asyncDispose]()
  })

  it.each([
    ['light, on a desk', { scheme: 'light', phone: false }],
    ['dark, on a telephone', { scheme: 'dark', phone: true }],
  ] as const)(
    'has nothing that axe finds, and nothing beyond the edge: %s',
    async (_sentence, options) => {
      const { page, context, complaints } = await visit(PAGES[0], options)
      for (const path of PAGES) {
        await page.goto(path)
        expect({ path, found: await violationsOf(page) }).toEqual({ path, found: [] })
        const overflow = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        expect({ path, overflow }).toEqual({ path, overflow: 0 })
      }
      await context.clearCookies()
      await page.goto('/console')
      expect(await violationsOf(page)).toEqual([])
      expect(complaints).toEqual([])
      await context.close()
    },
    120_000,
  )

  it('signs in, says what is wrong, and signs out', async () => {
    const { page, context } = await visit('/console')
    await context.clearCookies()
    await page.goto('/console/registrations')
    await page.getByLabel('User name').fill('admin')
    await page.getByLabel('Password').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('The user name or the password is wrong.').waitFor()
    await page.getByLabel('Password').fill(TEST_PASSWORD)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.waitForURL('**/console/registrations')
    expect(await page.evaluate('document.cookie')).toBe('')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/console/sign-in')
    await context.close()
  })

  it('is reached by a link of another site, with the session that there is', async () => {
    const { page, context } = await visit('/console/registrations')
    await page.goto('about:blank')
    await page.setContent(`<a href="${world.url}/console/runs">a link</a>`)
    await page.getByText('a link').click()
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    await context.clearCookies()
    await page.setContent(`<a href="${world.url}/console/runs">a link</a>`)
    await page.getByText('a link').click()
    await page.waitForURL('**/console/sign-in?next=*')
    await context.close()
  })

  it('works by the keyboard: skips to the content, asks, and gives the focus back', async () => {
    const { page, context } = await visit('/console/brokers/north')
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    const walked: string[] = []
    for (let step = 0; step < 4; step += 1) {
      await page.keyboard.press('Tab')
      walked.push(await focused(page))
    }
    expect(walked).toEqual(['Mesh', 'Plan', 'Reconcile now', 'Pause'])
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Pause Northern region?' }).waitFor()
    expect(await focused(page)).toBe('Pause')
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(await focused(page)).toBe('Pause')
    expect(await page.evaluate('document.activeElement.id')).toBe('pause')
    await context.close()
  })

  it('shows what happens without being loaded again, says it, and leaves the focus where it is', async () => {
    const { page, context, complaints } = await visit('/console')
    await page.evaluate('window.isTheSamePage = true')
    const link = page.getByRole('link', { name: 'Southern region' })
    await link.focus()
    const { db } = world.mesh.context
    const south = world.mesh.key(2)
    await setBrokerPaused(db, south, true)
    await page.locator('#broker-south').getByText('paused', { exact: true }).waitFor({ timeout: WITHIN_MS })
    expect(await page.locator('#announcer').textContent()).toContain('1 paused')
    expect(await page.evaluate('window.isTheSamePage')).toBe(true)
    expect(await focused(page)).toBe('Southern region')
    await setBrokerPaused(db, south, false)
    await page
      .locator('#broker-south')
      .getByText('paused', { exact: true })
      .waitFor({ state: 'detached', timeout: WITHIN_MS })
    expect(complaints).toEqual([])
    await context.close()
  }, 60_000)

  it('keeps a question open while the page behind it changes', async () => {
    const { page, context } = await visit('/console/brokers/south')
    await page.getByRole('button', { name: 'Reconcile now' }).click()
    const question = page.getByRole('dialog', { name: 'Reconcile Southern region now?' })
    await question.getByRole('checkbox').check()
    const { db } = world.mesh.context
    await db.updateTable('broker_status').set({ semp_version: '9.99' }).where('broker_id', '=', 'south').execute()
    await page.getByText('9.99').waitFor({ timeout: WITHIN_MS })
    expect(await question.isVisible()).toBe(true)
    expect(await question.getByRole('checkbox').isChecked()).toBe(true)
    await context.close()
  }, 60_000)

  it('approves an access request after it has said what that does', async () => {
    const { page, context } = await visit(PENDING)
    await page.getByRole('button', { name: 'Approve' }).click()
    const question = page.getByRole('dialog', { name: 'Approve this access request?' })
    await question.getByText('at once').waitFor()
    await question.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('status').getByText('Approved. Its brokers are being changed.').waitFor()
    await page.locator('#main').getByText('approved', { exact: true }).waitFor()
    await page.reload()
    expect(await page.getByText('Its brokers are being changed.').count()).toBe(0)
    await context.close()
  })
})
