import { KeymeshError } from '../domain/errors.ts'
import { SandboxBroker, type SandboxBrokerOptions } from './sandbox-broker.ts'

export interface SandboxOptions {
  /** How many brokers, or each with its own options. */
  readonly brokers: number | readonly SandboxBrokerOptions[]
  /** Options that all brokers share unless they have their own. */
  readonly common?: SandboxBrokerOptions
  /** 127.0.0.1 when absent. */
  readonly host?: string
  /** The first broker's port, the next ones count up; free ports when absent or 0. */
  readonly basePort?: number
  /** PEM texts; with them every SEMP server speaks TLS. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Decides page sizes, orders and chances; the same seed repeats them. */
  readonly seed?: number
}

export interface Sandbox extends AsyncDisposable {
  readonly brokers: readonly SandboxBroker[]
  /** A broker by its index. Throws when there is none. */
  broker(index?: number): SandboxBroker
  close(): Promise<void>
}

const DEFAULT_SEED = 20_249

/** Starts a simulated mesh. When one broker cannot listen, none stays up. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const perBroker: readonly SandboxBrokerOptions[] =
    typeof options.brokers === 'number' ? Array.from({ length: options.brokers }, () => ({})) : options.brokers
  const basePort = options.basePort ?? 0
  const brokers = perBroker.map(
    (own, index) =>
      new SandboxBroker(
        { ...options.common, ...own },
        {
          index,
          host: options.host ?? '127.0.0.1',
          port: basePort === 0 ? 0 : basePort + index,
          seed: options.seed ?? DEFAULT_SEED,
          tls: options.tls ?? null,
        },
      ),
  )
  const close = async () => {
    await Promise.all(brokers.map((broker) => broker.stop()))
  }
  try {
    for (const broker of brokers) await broker.start()
  } catch (error) {
    await close()
    throw listenError(error, options)
  }
  return {
    brokers,
    broker: (index = 0) => {
      const broker = brokers[index]
      if (broker === undefined) throw new RangeError(`the sandbox has ${brokers.length} brokers, not ${index + 1}`)
      return broker
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

const listenError = (cause: unknown, { host }: SandboxOptions): KeymeshError =>
  new KeymeshError({
    code: 'SANDBOX_CANNOT_LISTEN',
    fate: 'stop',
    message: `A simulated broker cannot listen on ${host ?? '127.0.0.1'}: ${cause instanceof Error ? cause.message : String(cause)}.`,
    hint:
      cause instanceof Error && 'code' in cause && cause.code === 'EADDRNOTAVAIL'
        ? 'Choose an address of this machine.'
        : 'Choose another first port, or none to take free ones.',
    cause,
  })
