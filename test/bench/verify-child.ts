import { readdir } from 'node:fs/promises'
import process from 'node:process'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { isProtocol, type Protocol } from '../../src/domain/catalogue.ts'
import { accountId, brokerId, type RegistrationId } from '../../src/domain/ids.ts'
import { provesLogin } from '../../src/domain/verdict.ts'
import { createLoginClients } from '../../src/login/login-clients.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { readMessaging } from '../../src/store/broker-settings.ts'
import { BENCH_BROKER_ID } from './fixture.ts'

/**
 * Logs in once with every credential over one protocol, in a process of its own on the joined database. Told by the
 * environment: BENCH_MODE=verify takes the product's way; BENCH_MODE=bare logs in with the same clients, BENCH_CONCURRENCY
 * at a time, and does no more. Both have logged in once before the clock starts. Prints one JSON line.
 */
export interface VerifyChildResult {
  readonly seconds: number
  readonly logins: number
  /** Those that proved nothing, or were refused. */
  readonly failed: number
  /** Of this process: user and system. */
  readonly cpuSeconds: number
  readonly maxRssMb: number
  readonly handlesBefore: number
  readonly handlesAfter: number
}

const BROKER = { accountId: accountId('default'), brokerId: brokerId(BENCH_BROKER_ID) }
const LOGIN_TIMEOUT_MS = 5_000
/** Connections to the database are given back after ten seconds without work. */
const HANDLES_PATIENCE_MS = 15_000

const { BENCH_MODE: mode, BENCH_PROTOCOL = '', BENCH_CONCURRENCY = '', KEYMESH_DATA_DIR } = process.env
if (!isProtocol(BENCH_PROTOCOL)) throw new TypeError(`${BENCH_PROTOCOL} is no protocol`)
const protocol: Protocol = BENCH_PROTOCOL

const env = { KEYMESH_DATA_DIR, KEYMESH_LOG_LEVEL: 'error' }
const context = await openContext(toConfig({ env, pid: process.pid, hostname: 'bench' }))
try {
  const result = mode === 'bare' ? await bare(context) : await verify(context)
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6
  process.stdout.write(`${JSON.stringify({ ...result, cpuSeconds, maxRssMb: maxRSS / 1024 })}\n`)
} finally {
  await context[Symbol.asyncDispose]()
}

type Measured = Omit<VerifyChildResult, 'cpuSeconds' | 'maxRssMb'>

async function verify({ engine, sweepStore }: Context): Promise<Measured> {
  const pass = async (registrationId?: RegistrationId) => {
    const only = registrationId === undefined ? {} : { registrationId }
    const counts = { logins: 0, failed: 0 }
    for await (const finding of engine.verify(BROKER, { protocol, ...only })) {
      if (finding.type !== 'login') continue
      counts.logins += 1
      if (!provesLogin(finding.login.verdict)) counts.failed += 1
    }
    return counts
  }
  for await (const [first] of sweepStore.confirmedLogins(BROKER, null)) {
    await pass(first?.pair.registrationId)
    break
  }
  return timed(() => pass())
}

async function bare(opened: Context): Promise<Measured> {
  const { target, attempts } = await readLogins(opened)
  const clients = createLoginClients()
  const pass = async (queue: readonly LoginAttempt[]) => {
    const counts = { logins: 0, failed: 0 }
    let next = 0
    const loop = async (): Promise<void> => {
      for (;;) {
        const attempt = queue[next++]
        if (attempt === undefined) return
        const verdict = await clients.probe(target, attempt, { timeoutMs: LOGIN_TIMEOUT_MS })
        counts.logins += 1
        if (!provesLogin(verdict)) counts.failed += 1
      }
    }
    await Promise.all(Array.from({ length: Number(BENCH_CONCURRENCY) }, loop))
    return counts
  }
  await pass(attempts.slice(0, 1))
  const result = await timed(() => pass(attempts))
  await clients.close()
  return result
}

async function readLogins({ db, sweepStore, reconcileStore }: Context) {
  const found = await readMessaging(db, BROKER)
  const port = found?.messaging.protocols.find((each) => each.protocol === protocol)?.port
  if (found === null || port === undefined) throw new Error(`the broker does not expose ${protocol}`)
  const { host, caCertificate = '' } = found.messaging
  const target: LoginTarget = { protocol, port, host, caCertificate, msgVpnName: found.msgVpnName }
  const attempts: LoginAttempt[] = []
  for await (const chunk of sweepStore.confirmedLogins(BROKER, null)) {
    for (const { pair, consumerKey } of chunk) {
      const stored = await reconcileStore.secret(pair, consumerKey)
      if (stored !== null) attempts.push({ username: consumerKey, password: stored.secret })
    }
  }
  return { target, attempts }
}

async function timed(pass: () => Promise<Pick<Measured, 'logins' | 'failed'>>): Promise<Measured> {
  const handlesBefore = await openHandles()
  const startedMs = performance.now()
  const counts = await pass()
  const seconds = (performance.now() - startedMs) / 1000
  return { seconds, ...counts, handlesBefore, handlesAfter: await settledHandles(handlesBefore) }
}

/** As soon as there are no more than before, or when the patience is over. */
async function settledHandles(before: number): Promise<number> {
  const giveUpAtMs = performance.now() + HANDLES_PATIENCE_MS
  for (;;) {
    const count = await openHandles()
    if (count <= before || performance.now() > giveUpAtMs) return count
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Open files and sockets, where the system tells; else what keeps the event loop up. */
async function openHandles(): Promise<number> {
  try {
    return (await readdir('/proc/self/fd')).length
  } catch {
    return process.getActiveResourcesInfo().filter((each) => each !== 'Timeout' && each !== 'Immediate').length
  }
}
