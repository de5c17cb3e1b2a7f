import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** Where this machine has a Chromium; null when it has none. */
export const CHROMIUM = PLACES.find((place) => existsSync(place)) ?? null

export const NO_CHROMIUM = 'needs chromium, which is not installed here'

/** Close it when done. */
export async function openChromium(): Promise<Browser> {
  if (CHROMIUM === null) throw new Error(NO_CHROMIUM)
  // Its sandbox does not work for root, and nothing but our own pages is opened.
  return await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
}
