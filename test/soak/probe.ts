import { subscribe } from 'node:diagnostics_channel'
import process from 'node:process'

/** What is sent to the process that started this one, over the channel between the two. */
export type Told =
  | ({ readonly type: 'sample'; readonly id: number } & Sample)
  /** A request to delete something on a broker is on its way. */
  | { readonly type: 'deletes'; readonly origin: string; readonly path: string }

export interface Sample {
  readonly rssMb: number
  /** In use after a collection. */
  readonly heapMb: number
  /** How many of each type keep the process busy. */
  readonly resources: Readonly<Record<string, number>>
}

export interface AskForSample {
  readonly sample: number
}

/**
 * Loaded before the program of a service that is watched: tells what it deletes and how much it holds, and ends it with
 * the process that started it. Keeps nothing alive.
 */
const tell = (told: Told): void => {
  if (process.connected) process.send?.(told, undefined, undefined, () => undefined)
}

subscribe('undici:request:create', (message) => {
  const { request } = message as {
    readonly request: { readonly method: string; readonly origin: string | URL; readonly path: string }
  }
  if (request.method === 'DELETE') tell({ type: 'deletes', origin: String(request.origin), path: request.path })
})

process.on('message', (asked: AskForSample) => {
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  const resources: Record<string, number> = {}
  for (const type of process.getActiveResourcesInfo()) resources[type] = (resources[type] ?? 0) + 1
  tell({ type: 'sample', id: asked.sample, rssMb: toMb(rss), heapMb: toMb(heapUsed), resources })
})
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
process.channel?.unref()

const toMb = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10
