import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import Table from 'cli-table3'
import { Command, InvalidArgumentError, Option } from 'commander'
import { PROTOCOLS } from '../domain/catalogue.ts'
import { errorLine, InvalidInputError, KeymeshError } from '../domain/errors.ts'
import type { LoginPorts } from '../sandbox/login/login-listeners.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { FULL_PAGES } from '../sandbox/semp-paging.ts'
import { explained } from './help.ts'

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
  readonly logins: boolean
  readonly loginPort: number
  readonly caFile?: string
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

const MAX_PORT = 65_535
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

const defaultUser = (host: string): SempUser => ({
  username: 'admin',
  password: LOOPBACK.has(host) ? 'admin' : randomBytes(12).toString('base64url'),
})

/** `keymesh sandbox`: simulated brokers to try the product with; ends on SIGINT or SIGTERM. */
export function sandboxCommand(dependencies: SandboxCommandDependencies = DEFAULT_DEPENDENCIES): Command {
  const command = new Command('sandbox')
    .description(
      'run simulated brokers that serve the SEMP v2 configuration API and let clients log in; not for production use',
    )
    .option('--brokers <count>', 'how many brokers', wholeNumber(1, 100), 3)
    .option(
      '--port <port>',
      'port of the first broker, the next ones count up; 0 takes free ones',
      wholeNumber(0, MAX_PORT),
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
    .option('--no-logins', 'open no ports for clients to log in on')
    .option(
      '--login-port <port>',
      `first of ${PROTOCOLS.length} ports that clients of the first broker log in on, the next brokers' count up; 0 takes free ones`,
      wholeNumber(0, MAX_PORT),
      0,
    )
    .option('--ca-file <path>', 'write the certificates to trust for logins over TLS to this file')
    .option('--json', 'print one line of JSON')
    .action((flags: SandboxFlags) => runSandbox(flags, dependencies))
  return explained(command, {
    notes: `Clients log in with the client usernames and passwords that were written over SEMP. The ports of a broker are, in this
order, those of ${PROTOCOLS.join(', ')}.`,
    examples: [
      'keymesh sandbox',
      'keymesh sandbox --brokers 1 --port 18081 --login-port 18100 --ca-file sandbox-ca.pem',
    ],
    exit: { 0: 'ended as asked', 1: 'a port is taken, or a file could not be written' },
  })
}

async function runSandbox(flags: SandboxFlags, dependencies: SandboxCommandDependencies): Promise<void> {
  const logins = loginPorts(flags)
  // Registered first: a signal that comes while the brokers start ends them too.
  const stopped = dependencies.untilStopped()
  const { startSandbox } = await import('../sandbox/sandbox.ts')
  await using sandbox = await startSandbox({
    brokers: logins.map((ports) => ({ logins: ports })),
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
  const caFile = flags.logins ? flags.caFile : undefined
  if (caFile !== undefined) await writeCertificates(sandbox, caFile)
  dependencies.write(flags.json === true ? jsonLine(sandbox, caFile) : tables(sandbox, flags.host, caFile))
  await stopped
}

/** Of each broker, in the order of the specification's protocols. */
function loginPorts({ brokers, logins, loginPort }: SandboxFlags): readonly LoginPorts[] {
  const portOf = (broker: number, protocol: number): number =>
    loginPort === 0 ? 0 : loginPort + broker * PROTOCOLS.length + protocol
  const last = portOf(brokers - 1, PROTOCOLS.length - 1)
  if (logins && last > MAX_PORT) {
    throw new InvalidInputError('The command line', [
      { path: '--login-port', message: `${brokers} brokers need the ports up to ${last}, and there are ${MAX_PORT}` },
    ])
  }
  return Array.from({ length: brokers }, (_, broker) => {
    if (!logins) return {}
    return Object.fromEntries(PROTOCOLS.map((protocol, index) => [protocol, portOf(broker, index)]))
  })
}

/** Each broker has an authority of its own. */
async function writeCertificates(sandbox: Sandbox, path: string): Promise<void> {
  const certificates = sandbox.brokers.map(({ caCertificate }) => `${caCertificate.trim()}\n`)
  await writeFile(path, certificates.join('')).catch((error: unknown) => {
    throw new KeymeshError({
      code: 'CA_FILE_NOT_WRITTEN',
      fate: 'stop',
      message: `The certificates cannot be written to ${path}: ${errorLine(error)}`,
      hint: 'Give --ca-file a path in a directory that is there and may be written to.',
    })
  })
}

/** The SEMP users of simulated brokers are no secret: whoever starts the sandbox needs them. */
const describe = (sandbox: Sandbox) =>
  sandbox.brokers.map(({ name, url, msgVpnName, username, password, endpoints }) => ({
    name,
    url,
    msgVpnName,
    username,
    password,
    endpoints,
  }))

const jsonLine = (sandbox: Sandbox, caFile: string | undefined): string =>
  `${JSON.stringify({ brokers: describe(sandbox), ...(caFile !== undefined && { caFile }) })}\n`

const ENDING = 'Ctrl-C ends the sandbox. It keeps everything in memory and forgets it at the end.'

function tables(sandbox: Sandbox, host: string, caFile: string | undefined): string {
  const trust = caFile === undefined ? [] : [`Certificates to trust for logins over TLS: ${caFile}`]
  return `${[sempTable(sandbox), ...loginTable(sandbox, host), ...trust, ENDING].join('\n')}\n`
}

function loginTable(sandbox: Sandbox, host: string): readonly string[] {
  if (sandbox.brokers.every(({ endpoints }) => endpoints.length === 0)) return []
  const rows = new Table({ head: ['broker', ...PROTOCOLS], style: { head: [], border: [] } })
  for (const { name, endpoints } of sandbox.brokers) {
    const ports = PROTOCOLS.map((protocol) => endpoints.find((each) => each.protocol === protocol)?.port ?? '-')
    rows.push([name, ...ports.map(String)])
  }
  return [`Ports that clients log in on, at ${host}:`, rows.toString()]
}

function sempTable(sandbox: Sandbox): string {
  const rows = new Table({
    head: ['broker', 'SEMP address', 'message VPN', 'user', 'password'],
    style: { head: [], border: [] },
  })
  for (const broker of describe(sandbox)) {
    rows.push([broker.name, broker.url, broker.msgVpnName, broker.username, broker.password])
  }
  return rows.toString()
}
