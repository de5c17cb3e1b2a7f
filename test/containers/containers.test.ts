import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whyNoContainer } from '../helpers/containers.ts'

/** As the Docker engine answers for images: it has `here:1`, and is ill when asked for `ill:1`. */
const docker = createServer((request, response) => {
  const status = { '/images/here%3A1/json': 200, '/images/ill%3A1/json': 500 }[request.url ?? ''] ?? 404
  response.writeHead(status).end('{}')
})
let directory = ''
let socket = ''
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-docker-'))
  socket = join(directory, 'docker.sock')
  await new Promise<void>((resolve) => docker.listen(socket, resolve))
})
afterAll(async () => {
  await new Promise((resolve) => docker.close(resolve))
  await rm(directory, { recursive: true })
})

describe('a container suite', () => {
  const cases: Readonly<Record<string, readonly [image: string, socket: () => string, reason: string | null]>> = {
    'runs where Docker has the image': ['here:1', () => socket, null],
    'is skipped where Docker lacks the image': ['not/here:1', () => socket, 'Docker has not pulled this image'],
    'is skipped where Docker is ill': ['ill:1', () => socket, 'Docker does not answer'],
    'is skipped where there is no Docker': ['here:1', () => join(directory, 'none.sock'), 'Docker does not answer'],
  }
  it.each(Object.entries(cases))('%s', async (_sentence, [image, at, reason]) => {
    expect(await whyNoContainer(image, { DOCKER_HOST: `unix://${at()}` })).toBe(reason)
  })
})
