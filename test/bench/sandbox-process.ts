import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import type { Protocol, ProtocolEndpoint } from '../../src/domain/catalogue.ts'
import type { FaultRule } from '../../src/sandbox/faults.ts'
import type { BenchBroker } from './fixture.ts'

export interface SandboxSettings {
  readonly brokers: number
  /** Over which clients may log in; none when absent. */
  readonly logins?: readonly Protocol[]
}

export interface SandboxedBroker extends BenchBroker {
  readonly endpoints: readonly ProtocolEndpoint[]
  /** PEM, of the ports with TLS. */
  readonly caCertificate: string
}

/** What the control API of a simulated broker takes. */
export interface Controls {
  readonly latency: { readonly latencyMs: number }
  readonly faults: readonly FaultRule[]
  readonly clear: Readonly<Record<string, never>>
  readonly reset: Readonly<Record<string, never>>
}

/** Simulated brokers in a process of their own, so that they do not share an event loop with what is measured. */
export class SandboxProcess {
  readonly brokers: readonly SandboxedBroker[]
  readonly stop: () => Promise<void>

  private constructor(brokers: readonly SandboxedBroker[], stop: () => Promise<void>) {
    this.brokers = brokers
    this.stop = stop
  }

  static async start(settings: SandboxSettings): Promise<SandboxProcess> {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'sandbox-child.js')], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, BENCH_SANDBOX: JSON.stringify(settings) },
    })
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    for await (const line of createInterface({ input: child.stdout })) {
      const { brokers } = JSON.parse(line) as Pick<SandboxProcess, 'brokers'>
      return new SandboxProcess(brokers, async () => {
        child.stdin.end()
        await exited
      })
    }
    throw new Error('the sandbox did not start')
  }

  get only(): SandboxedBroker {
    const [broker] = this.brokers
    if (broker === undefined || this.brokers.length > 1) throw new Error(`${this.brokers.length} brokers, not one`)
    return broker
  }

  /** All of them. */
  async control<What extends keyof Controls>(what: What, body: Controls[What]): Promise<void> {
    await Promise.all(this.brokers.map((broker) => control(broker, what, body)))
  }

  /** That all of them got since the last reset. */
  async requests(): Promise<number> {
    const counts = await Promise.all(
      this.brokers.map(async (broker) => {
        const response = await fetch(`${broker.url}/sandbox/counters`, { headers: authorization(broker) })
        return ((await response.json()) as { readonly total: number }).total
      }),
    )
    return counts.reduce((sum, count) => sum + count, 0)
  }
}

export async function control<What extends keyof Controls>(
  broker: BenchBroker,
  what: What,
  body: Controls[What],
): Promise<void> {
  const response = await fetch(`${broker.url}/sandbox/${what}`, {
    method: 'POST',
    headers: { ...authorization(broker), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`the sandbox refused ${what}: ${response.status}`)
}

export const authorization = ({ username, password }: BenchBroker): { readonly authorization: string } => ({
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
})
