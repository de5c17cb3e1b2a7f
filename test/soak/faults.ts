import type { SandboxBroker } from '../../src/sandbox/sandbox-broker.ts'
import type { FaultProxy } from '../helpers/fault-proxy.ts'
import type { FaultKind } from './fault-kinds.ts'

/** A simulated broker, and the proxy that the service reaches its management through. */
export interface FaultyBroker {
  readonly sandbox: SandboxBroker
  readonly proxy: FaultProxy
}

const WRITES = ['POST', 'PATCH', 'DELETE'] as const

export async function beginFault({ sandbox, proxy }: FaultyBroker, kind: FaultKind): Promise<void> {
  switch (kind) {
    case 'stopped':
      return sandbox.stop()
    case 'unavailable':
      return sandbox.setFaults([{ fault: 'http-503' }])
    case 'often-unavailable':
      return sandbox.setFaults([{ fault: 'http-503', rate: 0.4 }])
    case 'no-sessions':
      return sandbox.setFaults([{ fault: 'http-529' }])
    case 'answers-lost':
      return sandbox.setFaults(WRITES.map((method) => ({ fault: 'reset', applied: true, match: { method } })))
    case 'refuse':
      return proxy.set({ kind: 'refuse' })
    case 'reset':
      return proxy.set({ kind: 'reset' })
    case 'silent':
      return proxy.set({ kind: 'silent' })
    case 'slow':
      return proxy.set({ kind: 'slow', direction: 'down', bytesPerSecond: 2_000 })
    case 'late':
      return proxy.set({ kind: 'late', delayMs: 150 })
    case 'cut':
      return proxy.set({ kind: 'cut', direction: 'down', afterBytes: 1_000 })
    default: {
      const unreachable: never = kind
      return unreachable
    }
  }
}

/** Of whatever kind it is. */
export async function endFault({ sandbox, proxy }: FaultyBroker, kind: FaultKind): Promise<void> {
  if (kind === 'stopped') await sandbox.start()
  sandbox.setFaults([])
  await proxy.set({ kind: 'none' })
}
