import { connect, type TLSSocket } from 'node:tls'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginTarget } from '../reconcile/login-port.ts'
import { TIMED_OUT } from './deadline.ts'
import { networkFailure } from './network-failure.ts'
import { tlsClientOptions } from './tls-client-options.ts'

/** A listener's certificate whose chain, dates and name are good, or why nothing may be sent to the listener. */
export type Preflight =
  | { readonly passed: true; readonly commonNames: readonly string[] }
  | { readonly passed: false; readonly verdict: Verdict }

const CLOSED = notVerified('closed', 'The connection was closed before TLS was established.')

/** One TLS handshake, and goodbye: nothing is sent to the listener, and nothing of it is left. */
export function tlsPreflight(target: LoginTarget, signal: AbortSignal): Promise<Preflight> {
  return new Promise((resolve) => {
    let result: Preflight | null = null
    let socket: TLSSocket
    const end = (reached: Preflight): void => {
      result ??= reached
      // After a goodbye of TLS when there is somebody to say it to.
      if (reached.passed) socket.destroySoon()
      else socket.destroy()
    }
    const fail = (verdict: Verdict): void => end({ passed: false, verdict })
    const onAbort = (): void => {
      fail(TIMED_OUT)
      socket.destroy()
    }
    try {
      socket = connect({ host: target.host, port: target.port, ...tlsClientOptions(target) })
    } catch (error) {
      resolve({ passed: false, verdict: networkFailure(error) })
      return
    }
    socket.on('error', (error) => fail(networkFailure(error)))
    socket.on('secureConnect', () => end({ passed: true, commonNames: commonNamesOf(socket) }))
    socket.on('close', () => {
      signal.removeEventListener('abort', onAbort)
      resolve(result ?? { passed: false, verdict: CLOSED })
    })
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** Text, or several texts whatever the types say. */
function commonNamesOf(socket: TLSSocket): readonly string[] {
  const names: unknown = socket.getPeerCertificate().subject?.CN
  return [names].flat().filter((name): name is string => typeof name === 'string' && name !== '')
}
