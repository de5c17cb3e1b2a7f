import { existsSync } from 'node:fs'
import { get } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** What the container suites start, and the variables that name another image. */
export const IMAGES = {
  postgresql: { variable: 'KEYMESH_TEST_POSTGRES_IMAGE', image: 'postgres:16-alpine' },
  redis: { variable: 'KEYMESH_TEST_REDIS_IMAGE', image: 'redis:7-alpine' },
  broker: { variable: 'KEYMESH_TEST_BROKER_IMAGE', image: 'solace/solace-pubsub-standard:latest' },
} as const

export interface ImageCase {
  readonly image: string
  readonly skip: boolean
}

/** Says on standard error why there is nothing to test on. An image is never pulled: that is for a person to decide. */
export async function imageCase(name: keyof typeof IMAGES, env: Environment = process.env): Promise<ImageCase> {
  const { variable, image: usual } = IMAGES[name]
  const image = env[variable] || usual
  const reason = await whyNoContainer(image, env)
  if (reason !== null) process.stderr.write(`skipped: the suite on a container of ${image} (${reason})\n`)
  return { image, skip: reason !== null }
}

/** Null when Docker answers and has the image. */
export async function whyNoContainer(image: string, env: Environment): Promise<string | null> {
  const docker = dockerAddress(env)
  if (docker === null) return 'there is no Docker here'
  const status = await statusOf(docker, `/images/${encodeURIComponent(image)}/json`)
  if (status === 200) return null
  return status === 404 ? 'Docker has not pulled this image' : 'Docker does not answer'
}

type DockerAddress = { readonly socketPath: string } | { readonly host: string; readonly port: number }

function dockerAddress(env: Environment): DockerAddress | null {
  const given = env.DOCKER_HOST || undefined
  if (given?.startsWith('unix://') === true) return { socketPath: given.slice('unix://'.length) }
  if (given !== undefined && URL.canParse(given)) {
    const { hostname, port } = new URL(given)
    return { host: hostname, port: Number(port === '' ? 2375 : port) }
  }
  const sockets = [
    '/var/run/docker.sock',
    join(env.XDG_RUNTIME_DIR ?? '/nowhere', 'docker.sock'),
    join(homedir(), '.docker/run/docker.sock'),
  ]
  const socketPath = sockets.find(existsSync)
  return socketPath === undefined ? null : { socketPath }
}

/** 0 when nobody answers. */
function statusOf(docker: DockerAddress, path: string): Promise<number> {
  return new Promise((resolve) => {
    const request = get({ ...docker, path, timeout: 3_000, agent: false }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
    })
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve(0))
  })
}
