import type { MessagePort } from 'node:worker_threads'
import type { Verdict } from '../domain/verdict.ts'
import type { SmfClient, SmfLoginRequest } from './smf-client.ts'

export type ToSmfThread =
  | { readonly kind: 'log-in'; readonly id: number; readonly request: SmfLoginRequest }
  /** Answered like every login, by its `verdict`. */
  | { readonly kind: 'abort'; readonly id: number }

export interface FromSmfThread {
  readonly id: number
  readonly verdict: Verdict
}

/** The other end of `createSmfThread`: does each login that the port asks for. */
export function serveSmfLogins(port: MessagePort, client: SmfClient): void {
  // Nobody reads what a thread prints: reading it would keep the process from ending.
  for (const stream of [process.stdout, process.stderr]) stream.write = () => true
  const logins = new Map<number, AbortController>()
  port.on('message', (message: ToSmfThread) => {
    if (message.kind === 'abort') {
      logins.get(message.id)?.abort()
      return
    }
    const { id, request } = message
    const controller = new AbortController()
    logins.set(id, controller)
    void client.logIn(request, controller.signal).then((verdict) => {
      logins.delete(id)
      const answer: FromSmfThread = { id, verdict }
      port.postMessage(answer)
    })
  })
}
