import { randomBytes } from 'node:crypto'
import Table from 'cli-table3'
import { Command, InvalidArgumentError, Option } from 'commander'
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts'
import { FULL_PAGES } from '../sandbox/semp-paging.ts'

export interface SandboxCommandDependencies {
  /** Standard output. */
  readonly write: (text: string) => void
  /** Resolves when the sandbox has to end. */
  readonly untilStopped: () => Promise<void>
}

interface SempUser {
  readonly username: string
  readonly password: string
}

interface SandboxFlags {
  readonly brokers: number
  readonly port: number
  readonly host: string
  readonly latency: number
  readonly sessions: number
  readonly seed?: number
  readonly user: SempUser | null
  readonly fullPages?: true
  readonly json?: true
}

const DEFAULT_DEPENDENCIES: SandboxCommandDependencies = {
  write: (text) => {
    process.stdout.write(text)
  },
  untilStopped: () =>
    new Promise((resolve) => {
      const stop = () => {
        process.off('SIGINT', stop)
        process.off('SIGTERM', stop)
        resolve()
      }
      process.on('SIGINT', stop)
      process.on('SIGTERM', stop)
    }),
}

const wholeNumber = (minimum: number, maximum: number) => (text: string) => {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < minimum || number > maximum) {
    throw new InvalidArgumentError(`A whole number from ${minimum} to ${maximum} is needed.`)
  }
  return number
}

const nameAndPassword = (text: string): SempUser => {
  const colon = text.indexOf(':')
  if (colon < 1) throw new InvalidArgumentError('A name and a password with a colon between are needed.')
  return { username: text.slice(0, colon), password: text.slice(colon + 1) }
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

const defaultUser = (host: string): SempUser => ({
  username: 'admin',
  password: LOOPBACK.has(host) ? 'admin' : randomBytes(12).toString('base64url'),
})

/** `keymesh sandbox`: simulated brokers to try the product with; ends on SIGINT or SIGTERM. */
export function sandboxCommand(dependencies: SandboxCommandDependencies = DEFAULT_DEPENDENCIES): Command {
  return new Command('sandbox')
    .description('run simulated brokers that serve the SEMP v2 configuration API; not for production use')
    .option('--brokers <count>', 'how many brokers', wholeNumber(1, 100), 3)
    .option(
      '--port <port>',
      'port of the first broker, the next ones count up; 0 takes free ones',
      wholeNumber(0, 65_535),
      0,
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--latency <ms>', 'milliseconds that every answer waits', wholeNumber(0, 600_000), 0)
    .option('--sessions <count>', 'SEMP sessions that each broker has', wholeNumber(1, 100_000), 100)
    .option('--seed <number>', 'makes page sizes and chances repeatable', wholeNumber(0, 4_294_967_295))
    .addOption(
      new Option('--user <name:password>', 'the SEMP user of every broker')
        .argParser(nameAndPassword)
        .default(null, 'admin:admin, or a random password when others can reach the address'),
    )
    .option('--full-pages', 'never answer with short or empty pages')
    .option('--json', 'print one line of JSON')
    .action((flags: SandboxFlags) => runSandbox(flags, dependencies))
}

async function runSandbox(flags: SandboxFlags, dependencies: SandboxCommandDependencies): Promise<void> {
  // Registered first: a signal that comes while the brokers start ends them too.
  const stopped = dependencies.untilStopped()
  await using sandbox = await startSandbox({
    brokers: flags.brokers,
    host: flags.host,
    basePort: flags.port,
    ...(flags.seed !== undefined && { seed: flags.seed }),
    common: {
      ...(flags.user ?? defaultUser(flags.host)),
      latencyMs: flags.latency,
      sessions: { slots: flags.sessions },
      ...(flags.fullPages === true && { paging: FULL_PAGES }),
    },
  })
  dependencies.write(flags.json === true ? jsonLine(sandbox) : table(sandbox))
  await stopped
}

/** The SEMP users of simulated brokers are no secret: whoever starts the sandbox needs them. */
const describe = (sandbox: Sandbox) =>
  sandbox.brokers.map(({ name, url, msgVpnName, username, password }) => ({
    name,
    url,
    msgVpnName,
    username,
    password,
  }))

const jsonLine = (sandbox: Sandbox): string => `${JSON.stringify({ brokers: describe(sandbox) })}\n`

function table(sandbox: Sandbox): string {
  const rows = new Table({
    head: ['broker', 'SEMP address', 'message VPN', 'user', 'password'],
    style: { head: [], border: [] },
  })
  for (const broker of describe(sandbox)) {
    rows.push([broker.name, broker.url, broker.msgVpnName, broker.username, broker.password])
  }
  return `${rows.toString()}\nCtrl-C ends the sandbox. It keeps everything in memory and forgets it at the end.\n`
}
