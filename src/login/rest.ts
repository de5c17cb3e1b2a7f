import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request as requestInClearText } from 'node:http'
import { request as requestWithTls } from 'node:https'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt, LoginPort, LoginTarget, ProbeLimits } from '../reconcile/login-port.ts'
import { basicToken, fromBrokerWords, quoted } from './broker-words.ts'
import { atDeadline, TIMED_OUT } from './deadline.ts'
import { networkFailure } from './network-failure.ts'
import { tlsClientOptions } from './tls-client-options.ts'

/** A broker says in a line what it refuses; the rest of an answer's body is not read. */
const MAX_BODY_BYTES = 4096

const ACCEPTED: Verdict = { outcome: 'accepted' }
const CLOSED = notVerified('closed', 'The connection was closed before the login was answered.')

/**
 * REST messaging, protocols `http` and `https`. There is no login without a message: the probe publishes an empty one
 * in direct mode to a topic that nobody has a reason to subscribe to.
 */
export function createRestLogin(): LoginPort {
  return {
    async probe(target, attempt, limits) {
      const problem = inputProblem(attempt)
      return problem === null ? post(target, attempt, limits) : notVerified('bad-input', problem)
    },
  }
}

function inputProblem({ username, password }: LoginAttempt): string | null {
  if (username === '') return 'The username is empty.'
  if (password.reveal() === '') return 'The password is empty.'
  return username.includes(':') ? 'Basic authentication takes no colon in a username.' : null
}

function post(target: LoginTarget, attempt: LoginAttempt, limits: ProbeLimits): Promise<Verdict> {
  return new Promise((resolve) => {
    let request: ClientRequest
    try {
      request = open(target, attempt)
    } catch (error) {
      resolve(networkFailure(error))
      return
    }
    let verdict: Verdict | null = null
    const end = (reached: Verdict): void => {
      verdict ??= reached
      request.destroy()
    }
    const callOff = atDeadline(limits, () => end(TIMED_OUT))
    request.on('error', (error) => end(networkFailure(error)))
    request.on('close', () => {
      callOff()
      resolve(verdict ?? CLOSED)
    })
    request.on('response', (response) => readVerdict(response, attempt, end))
    request.end()
  })
}

function open(target: LoginTarget, { username, password }: LoginAttempt): ClientRequest {
  const options = {
    host: target.host,
    port: target.port,
    method: 'POST',
    // `/TOPIC/` says what a path without it means in messaging mode.
    path: `/TOPIC/keymesh-probe/${randomUUID()}`,
    headers: {
      authorization: `Basic ${basicToken(username, password.reveal())}`,
      'content-length': 0,
      'solace-delivery-mode': 'Direct',
    },
    // A connection of its own: a broker that knows a connection's login does not check it again.
    agent: false,
  }
  return target.protocol === 'https'
    ? requestWithTls({ ...options, ...tlsClientOptions(target) })
    : requestInClearText(options)
}

function readVerdict(response: IncomingMessage, attempt: LoginAttempt, end: (verdict: Verdict) => void): void {
  const status = response.statusCode ?? 0
  response.on('error', (error) => end(networkFailure(error)))
  if (status >= 200 && status < 300) {
    end(ACCEPTED)
    return
  }
  const chunks: Buffer[] = []
  let length = 0
  const decide = (): void => {
    const body = Buffer.concat(chunks).subarray(0, MAX_BODY_BYTES).toString('utf8')
    end(refusal({ status, reason: response.statusMessage ?? '', body }, attempt))
  }
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length >= MAX_BODY_BYTES) decide()
  })
  response.on('end', decide)
}

interface Answer {
  readonly status: number
  readonly reason: string
  readonly body: string
}

/**
 * The broker's documentation promises 4xx with a text for a client's mistake, 5xx with a text for its own trouble, and
 * no 3xx. A web server that is no broker answers 404 or 405 as well, so these say nothing of the login.
 */
function refusal({ status, reason, body }: Answer, attempt: LoginAttempt): Verdict {
  const words = `${reason}\n${body}`
  const said = `HTTP ${status}${quoted(isPage(body) || body.trim() === '' ? reason : body, attempt)}`
  if (status === 401) {
    return fromBrokerWords(words) ?? { outcome: 'rejected', detail: `The broker refused the login with ${said}.` }
  }
  if (status === 403) return fromBrokerWords(words) ?? forbidden(body, said)
  if (status === 429) return { outcome: 'busy', detail: `The broker takes no more requests now: ${said}.` }
  if (status >= 500) {
    return fromBrokerWords(words) ?? { outcome: 'busy', detail: `The broker cannot serve now: ${said}.` }
  }
  return notVerified('protocol', `The port answered ${said}, which is not how a broker answers a login.`)
}

/** `Unauthorized` is how the broker says with 403 that it did not take a credential, `Forbidden` what it says of ACLs. */
function forbidden(body: string, said: string): Verdict {
  const line = isPage(body) ? '' : body.trim()
  if (/^unauthorized\.?$/i.test(line)) {
    return { outcome: 'rejected', detail: `The broker refused the login with ${said}.` }
  }
  if (/^forbidden\.?$/i.test(line) || /\b(?:topic|publish)\b.*\b(?:denied|not (?:allowed|permitted))\b/i.test(line)) {
    return { outcome: 'denied', detail: `The login is good; what the probe did is not allowed: ${said}.` }
  }
  return notVerified('unknown', `The port answered ${said}, which does not say why.`)
}

/** A web server's error page, which no broker sends. */
const isPage = (body: string): boolean => body.trimStart().startsWith('<')
