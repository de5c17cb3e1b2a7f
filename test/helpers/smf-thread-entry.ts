import { parentPort } from 'node:worker_threads'
import type { Verdict } from '../../src/domain/verdict.ts'
import { serveSmfLogins } from '../../src/login/serve-smf-logins.ts'
import type { SmfLoginRequest } from '../../src/login/smf-client.ts'

/** A thread whose client does what the username says, and is accepted when that says nothing. */
const never = new Promise<Verdict>(() => {})

function logIn({ username }: SmfLoginRequest, signal: AbortSignal): Promise<Verdict> {
  switch (username) {
    case 'throws later':
      setTimeout(() => {
        throw new Error('out of an event')
      })
      return never
    case 'leaves':
      process.exit(3)
      return never
    case 'takes all memory': {
      const held: unknown[] = []
      for (;;) held.push(Array.from({ length: 10_000 }, () => held.length))
    }
    case 'waits':
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ outcome: 'rejected', detail: 'it was too late' }))
      })
    case 'hangs':
      for (;;);
    default:
      process.stdout.write('the thread prints\n')
      process.stderr.write('the thread complains\n')
      return Promise.resolve({ outcome: 'accepted' })
  }
}

if (parentPort !== null) serveSmfLogins(parentPort, { logIn, close() {} })
