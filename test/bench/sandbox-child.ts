import process from 'node:process'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { FULL_PAGES } from '../../src/sandbox/semp-paging.ts'
import type { SandboxedBroker, SandboxSettings } from './sandbox-process.ts'

/**
 * Simulated brokers in a process of their own. Told by the environment: BENCH_SANDBOX, the settings as JSON. Prints one
 * JSON line with what the brokers are reached by; ends with its standard input, so that it never outlives its parent.
 */
const { brokers, logins } = JSON.parse(process.env.BENCH_SANDBOX ?? '{}') as SandboxSettings
const ports = Object.fromEntries((logins ?? []).map((protocol) => [protocol, 0]))
const sandbox = await startSandbox({ brokers, common: { paging: FULL_PAGES, logins: ports } })
const told = sandbox.brokers.map(
  ({ url, msgVpnName, username, password, endpoints, caCertificate }): SandboxedBroker => ({
    url,
    msgVpnName,
    username,
    password,
    endpoints,
    caCertificate,
  }),
)
process.stdout.write(`${JSON.stringify({ brokers: told })}\n`)
process.stdin.resume().on('end', () => void sandbox.close().then(() => process.exit(0)))
