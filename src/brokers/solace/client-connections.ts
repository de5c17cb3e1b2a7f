import { z } from 'zod'
import { codeOf } from '../../domain/errors.ts'
import type { SempSender } from './semp-client.ts'
import { abortError } from './semp-errors.ts'
import { encodePart, type SempPaths } from './semp-paths.ts'
import { readPages, type SempRead } from './semp-reads.ts'
import { quoteName } from './solace-mapping.ts'

/** A probe cannot fill up what allows more than this: nobody counts then. */
export const COUNTED_LIMIT = 1000
const LIMITS_FRESH_MS = 60_000

/** Limits of connections per client username, by client profile; profiles that allow many are not in it. */
export type ConnectionLimits = ReadonlyMap<string, number>

/** Limits of a kind of transport are smaller than the whole, or 0: the transport is off. */
const PROFILE = z
  .object({
    clientProfileName: z.string(),
    maxConnectionCountPerClientUsername: z.int().nonnegative(),
    serviceSmfMaxConnectionCountPerClientUsername: z.int().nonnegative(),
    serviceWebMaxConnectionCountPerClientUsername: z.int().nonnegative(),
  })
  .transform((profile) => {
    const { serviceSmfMaxConnectionCountPerClientUsername: smf, serviceWebMaxConnectionCountPerClientUsername: web } =
      profile
    const limit = Math.min(profile.maxConnectionCountPerClientUsername, ...[smf, web].filter((each) => each > 0))
    return { name: profile.clientProfileName, limit }
  })

const CLIENT = z.object({ clientUsername: z.string() })

/** Errors that say nothing of connections: not there, not supported, not allowed. */
const CANNOT_TELL: ReadonlySet<string> = new Set([
  'NOT_FOUND',
  'SEMP_INVALID_PARAMETER',
  'SEMP_INVALID_PATH',
  'SEMP_NOT_SUPPORTED',
  'UNAUTHORIZED_SCOPE',
])

export const cannotTell = (error: unknown): boolean => CANNOT_TELL.has(codeOf(error))

const describeLimits = (): string => 'read how many connections the client profiles allow'

/** How many connections client profiles allow, and how many a client username has, by the monitoring API. */
export class ClientConnections {
  readonly #client: SempSender
  readonly #paths: SempPaths
  #limits: { readonly read: Promise<ConnectionLimits>; readonly atMs: number } | null = null

  constructor(client: SempSender, paths: SempPaths) {
    this.#client = client
    this.#paths = paths
  }

  /** Read once a minute for all who ask: the signal of one of them does not end it. */
  async limits(signal: AbortSignal | undefined): Promise<ConnectionLimits> {
    if (signal?.aborted === true) {
      throw abortError(signal, { describe: describeLimits, brokerUrl: this.#client.address.display, secrets: [] })
    }
    const nowMs = performance.now()
    if (this.#limits !== null && nowMs - this.#limits.atMs <= LIMITS_FRESH_MS) return this.#limits.read
    const read = this.#readLimits()
    this.#limits = { read, atMs: nowMs }
    read.catch(() => {
      if (this.#limits?.read === read) this.#limits = null
    })
    return read
  }

  /** Stops counting at `atMost`. */
  async count(clientUsername: string, atMost: number, signal: AbortSignal | undefined): Promise<number> {
    const read: SempRead<readonly z.output<typeof CLIENT>[]> = {
      kind: 'clients',
      path: this.#paths.monitoredClients,
      where: `clientUsername==${encodePart(clientUsername)}`,
      select: Object.keys(CLIENT.shape),
      describe: () => `count the connections of client username ${quoteName(clientUsername)}`,
      schema: z.array(CLIENT),
    }
    let count = 0
    for await (const rows of readPages(this.#client, read, signal)) {
      count += rows.filter((row) => row.clientUsername === clientUsername).length
      if (count >= atMost) return atMost
    }
    return count
  }

  async #readLimits(): Promise<ConnectionLimits> {
    const read: SempRead<readonly z.output<typeof PROFILE>[]> = {
      kind: 'clientProfile',
      path: this.#paths.collection('clientProfile'),
      select: Object.keys(PROFILE.in.shape),
      describe: describeLimits,
      schema: z.array(PROFILE),
    }
    const limits = new Map<string, number>()
    for await (const rows of readPages(this.#client, read, undefined)) {
      for (const { name, limit } of rows) if (limit <= COUNTED_LIMIT) limits.set(name, limit)
    }
    return limits
  }
}
