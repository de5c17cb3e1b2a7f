import { parentPort } from 'node:worker_threads'
import { serveSmfLogins } from './serve-smf-logins.ts'
import { createSmfClient } from './smf-client.ts'

if (parentPort !== null) {
  serveSmfLogins(
    parentPort,
    createSmfClient(async () => (await import('solclientjs')).default),
  )
}
