// Takes the pictures of the console that are in the documents: npm run screenshots
//
// The demo of `keymesh demo` runs first, so that there is drift that was healed and a conflict that was not; then more
// brokers are declared, one that is down among them, and something is broken that waits for a person.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import type { Context } from '../src/context.ts'
import { type Demo, runDemo } from '../src/demo/demo.ts'
import { demoCatalogue, withNewcomer } from '../src/demo/demo-catalogue.ts'
import { brokerId } from '../src/domain/ids.ts'
import type { PortalBroker, PortalFile } from '../src/domain/portal-file.ts'
import { Secret } from '../src/domain/secret.ts'
import { SESSION_COOKIE } from '../src/http/authentication.ts'
import { startApi } from '../src/roles.ts'
import { importPortalFile } from '../src/store/import-portal-file.ts'
import { setBrokerPaused } from '../src/store/pause.ts'
import { cryptoRandom } from '../src/store/random-source.ts'
import { insertUser } from '../src/store/users.ts'
import { openChromium } from '../test/browser/chromium.ts'

interface Picture {
  readonly name: string
  readonly path: string
  readonly scheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
}

const DESKTOP = { width: 1280, height: 860 }
const PHONE = { width: 390, height: 844 }

const PICTURES: readonly Picture[] = [
  { name: 'mesh-light', path: '/console', scheme: 'light', ...DESKTOP },
  { name: 'mesh-dark', path: '/console', scheme: 'dark', ...DESKTOP },
  { name: 'mesh-phone', path: '/console', scheme: 'light', ...PHONE },
  { name: 'registration-light', path: '/console/registrations/crew-app-harbour', scheme: 'light', ...DESKTOP },
  { name: 'drift-light', path: '/console/drift', scheme: 'light', ...DESKTOP },
]

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

async function main(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const story = { step: say, done: say, detail: () => undefined }
  const demo = await runDemo(story, new AbortController().signal)
  const api = await startApi(demo.context, demo.queue)
  const browser = await openChromium()
  try {
    await addTrouble(demo)
    const session = await addAdministrator(demo.context)
    for (const picture of PICTURES) await take(browser, picture, { url: api.url, session, directory })
  } finally {
    await browser.close()
    await api.stop()
    await demo.dispose()
  }
}

/** One broker is down, one is paused, one waits for a person. */
async function addTrouble({ context, sandbox }: Demo): Promise<void> {
  const { db, sealer, accountId, now, engine } = context
  const file = withStaging(withNewcomer(await demoCatalogue(sandbox)))
  await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: now }, accountId, file)
  const [first, second] = file.brokers
  if (first === undefined || second === undefined) throw new Error('the sample catalogue has too few brokers')
  const { queues } = sandbox.broker(1).state
  const [queue = ''] = queues.names().filter((name) => name.startsWith('keymesh-'))
  queues.change(queue, { accessType: 'non-exclusive' })
  await setBrokerPaused(db, { accountId, brokerId: brokerId('staging-south') }, true)
  for (const { id } of file.brokers) {
    await engine.sweep({ accountId, brokerId: id }, { trigger: 'sweep' }).catch(() => undefined)
  }
}

function withStaging(file: PortalFile): PortalFile {
  const [sample] = file.brokers
  if (sample === undefined) throw new Error('the sample catalogue has no broker')
  return {
    ...file,
    environments: [...file.environments, { id: 'staging', name: 'Staging' }],
    eventMeshes: [...file.eventMeshes, { id: 'rail-staging', name: 'Rail staging', environmentId: 'staging' }],
    brokers: [...file.brokers, staging(sample, 'north', 1), staging(sample, 'south', 2)],
  }
}

/** Nothing listens there. */
const staging = (sample: PortalBroker, name: string, port: number): PortalBroker => ({
  ...sample,
  id: brokerId(`staging-${name}`),
  name: `Staging ${name}`,
  eventMeshId: 'rail-staging',
  management: sample.management && { ...sample.management, url: `http://127.0.0.1:${port}`, requestTimeoutMs: 500 },
  managementPassword: new Secret('not-used'),
})

/** Answers the token of a session. */
async function addAdministrator({ db, accountId, userTokens }: Context): Promise<string> {
  const id = cryptoRandom.token(11)
  await insertUser(db, { id, name: 'ada', passwordHash: '-', accountId, roles: ['administrator'] })
  return await userTokens.issue({ userId: id, accountId: null, generation: 1 }, 3_600_000)
}

interface Place {
  readonly url: string
  readonly session: string
  readonly directory: string
}

async function take(browser: Browser, picture: Picture, { url, session, directory }: Place): Promise<void> {
  const { name, path, scheme, width, height } = picture
  const context = await browser.newContext({ baseURL: url, colorScheme: scheme, viewport: { width, height } })
  await context.addCookies([{ name: SESSION_COOKIE, value: session, url: `${url}/console` }])
  const page = await context.newPage()
  await page.goto(path)
  // What has to be counted may come a moment after the page.
  await page.locator('main:not(:has-text("counted"))').waitFor()
  await page.screenshot({ path: join(directory, `${name}.png`) })
  await context.close()
  say(`${name}.png`)
}

await main(process.argv[2] ?? 'docs/images')
