import { KeymeshError } from '../domain/errors.ts'
import { createApp, type Surface } from './app.ts'
import type { HttpDependencies } from './dependencies.ts'

export interface ServerOptions {
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  /** How long requests that are under way may take when it stops. */
  readonly patienceMs?: number
  readonly surface?: Surface
}

export interface Server {
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** Takes no more connections, lets what is under way end, then ends it. */
  close(): Promise<void>
}

const PATIENCE_MS = 10_000

export async function startServer(dependencies: HttpDependencies, options: ServerOptions): Promise<Server> {
  const { host, port, patienceMs = PATIENCE_MS } = options
  const app = await createApp(dependencies, options.surface)
  let url: string
  try {
    url = await app.listen({ host, port })
  } catch (error) {
    await app.close()
    throw cannotListen(options, error)
  }
  return {
    url,
    close: async () => {
      const impatient = setTimeout(() => app.server.closeAllConnections(), patienceMs)
      try {
        await app.close()
      } finally {
        clearTimeout(impatient)
      }
    },
  }
}

function cannotListen({ host, port, surface }: ServerOptions, error: unknown): KeymeshError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
  const taken = code === 'EADDRINUSE'
  return new KeymeshError({
    code: 'CANNOT_LISTEN',
    fate: 'stop',
    message: `${surface === 'health' ? 'The port of metrics and health' : 'The API'} cannot listen on ${host} port ${port}: ${taken ? 'another program does' : code}.`,
    hint: `Choose another ${surface === 'health' ? 'KEYMESH_METRICS_PORT' : 'PORT'} or KEYMESH_HOST, or end what holds it.`,
    cause: error,
  })
}
