import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { SESSION_COOKIE } from '../../src/http/authentication.ts'

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

export interface Look {
  readonly name: string
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
}

/** How every page must be good to look at. */
export const LOOKS: readonly Look[] = [
  { name: 'light, on a desk', colorScheme: 'light', width: 1280 },
  { name: 'dark, on a telephone', colorScheme: 'dark', width: 390 },
]

/** A browser of its own cookies, in which this session is signed in. */
export async function signedIn(
  browser: Browser,
  { url, session, look }: { readonly url: string; readonly session: string; readonly look: Look },
): Promise<BrowserContext> {
  const { colorScheme, width } = look
  const context = await browser.newContext({ baseURL: url, colorScheme, viewport: { width, height: 900 } })
  await context.addCookies([{ name: SESSION_COOKIE, value: session, url: `${url}/console` }])
  return context
}

/** What axe objects to, a line each; the empty list when it finds nothing. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  // Past the content security policy, which lets no foreign script into the page.
  await page.evaluate(await readAxe())
  const results = (await page.evaluate('axe.run()')) as AxeResults
  return results.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${help}, at ${target.join(' ')}: ${html.slice(0, 200)}`),
  )
}

let axe: Promise<string> | undefined
function readAxe(): Promise<string> {
  axe ??= readFile(AXE, 'utf8')
  return axe
}
