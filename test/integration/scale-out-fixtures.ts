import { sql } from 'kysely'
import { toConfig } from '../../src/config.ts'
import { type Context, openContext } from '../../src/context.ts'
import { Disposer } from '../../src/disposer.ts'
import type { PortalRegistration } from '../../src/domain/portal-file.ts'
import { type MeshOptions, type TestMesh, withMesh } from '../helpers/mesh.ts'
import { type SempTap, startSempTap, type TappedWrite } from '../helpers/semp-tap.ts'
import { ordersPortal } from './reconcile-fixtures.ts'

/** One write as it was on its way: from when it came to when its answer went back. */
export interface WriteOnItsWay extends TappedWrite {
  readonly cameAtMs: number
  answeredAtMs: number
}

/** Several contexts, as processes of one installation have them, on one broker behind a tap. */
export class Replicas implements AsyncDisposable {
  readonly mesh: TestMesh
  readonly tap: SempTap
  readonly writes: readonly WriteOnItsWay[]
  readonly #opened: Disposer
  readonly #listeners: (() => void)[]

  private constructor(parts: {
    readonly mesh: TestMesh
    readonly tap: SempTap
    readonly writes: readonly WriteOnItsWay[]
    readonly opened: Disposer
    readonly listeners: (() => void)[]
  }) {
    this.mesh = parts.mesh
    this.tap = parts.tap
    this.writes = parts.writes
    this.#opened = parts.opened
    this.#listeners = parts.listeners
  }

  static async open(registrations: readonly PortalRegistration[], options: MeshOptions = {}): Promise<Replicas> {
    const opened = new Disposer()
    try {
      const mesh = await withMesh({ sandbox: { logins: { mqtt: 0 } }, ...options })
      opened.defer(() => mesh[Symbol.asyncDispose]())
      const writes: WriteOnItsWay[] = []
      const listeners: (() => void)[] = []
      const open = new Map<TappedWrite, WriteOnItsWay>()
      const onWrite = (write: TappedWrite, moment: 'came' | 'answered'): void => {
        if (moment === 'came') {
          const onItsWay = { ...write, cameAtMs: performance.now(), answeredAtMs: Number.POSITIVE_INFINITY }
          open.set(write, onItsWay)
          writes.push(onItsWay)
          return
        }
        const found = open.get(write)
        if (found !== undefined) found.answeredAtMs = performance.now()
        for (const listener of listeners) listener()
      }
      const tap = await startSempTap(mesh.broker().url, { onWrite })
      opened.defer(() => tap[Symbol.asyncDispose]())
      const brokers = mesh.brokers.map((broker) => ({
        ...broker,
        management: broker.management && { ...broker.management, url: tap.url, requestTimeoutMs: 120_000 },
      }))
      await mesh.import({ brokers, ...ordersPortal(brokers, registrations) })
      return new Replicas({ mesh, tap, writes, opened, listeners })
    } catch (error) {
      await opened.dispose()
      throw error
    }
  }

  /** Another replica; its sessions with the broker are its own. */
  async replica(name: string, env: Readonly<Record<string, string>> = {}): Promise<Context> {
    const config = toConfig({ env: { ...this.mesh.env, ...env }, pid: process.pid, hostname: name })
    const context = await openContext(config)
    this.#opened.defer(() => context[Symbol.asyncDispose]())
    return context
  }

  /** Called when the broker has done a write. */
  onAnswer(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Pairs of writes to one registration that were on their way at once, from two replicas. */
  overlaps(registrationOf: (write: TappedWrite) => string | null): readonly string[] {
    return this.writes.flatMap((one, index) =>
      this.writes.slice(index + 1).flatMap((other) => {
        const registration = registrationOf(one)
        if (registration === null || registration !== registrationOf(other) || one.session === other.session) return []
        return other.cameAtMs < one.answeredAtMs ? [`${registration}: ${one.method} and ${other.method}`] : []
      }),
    )
  }

  readonly requestState = async (registration: string): Promise<string | undefined> => {
    const { rows } = await sql<{ state: string }>`
      select state from access_requests where registration_id = ${registration}`.execute(this.mesh.context.db)
    return rows[0]?.state
  };

  [Symbol.asyncDispose](): Promise<void> {
    return this.#opened.dispose()
  }
}
