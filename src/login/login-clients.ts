import type { Protocol } from '../domain/catalogue.ts'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt, LoginPort, ProbeLimits } from '../reconcile/login-port.ts'
import { createAmqpLogin } from './amqp.ts'
import { atDeadline, TIMED_OUT } from './deadline.ts'
import { createMqttLogin } from './mqtt.ts'
import { createRestLogin } from './rest.ts'
import { createSmfLogin } from './smf.ts'

export interface LoginClients extends LoginPort {
  /** Gives back what the clients keep for later; a probe after it starts anew. */
  close(): Promise<void>
}

/** A probe that ignores its deadline or its signal is given up this much later. */
const PATIENCE_MS = 250
/** The SEMP v2 API bounds both. */
const USERNAME_MAX_LENGTH = 189
const PASSWORD_MAX_LENGTH = 128

/** Real messaging clients for all eleven protocols. Whatever a library does, a probe ends in time with a verdict. */
export function createLoginClients(overrides: Partial<Record<Protocol, LoginPort>> = {}): LoginClients {
  const smf = createSmfLogin()
  const amqp = createAmqpLogin()
  const mqtt = createMqttLogin()
  const rest = createRestLogin()
  const clients: Readonly<Record<Protocol, LoginPort>> = {
    smf,
    smfs: smf,
    smfc: smf,
    amqp,
    amqps: amqp,
    mqtt,
    'secure-mqtt': mqtt,
    mqttws: mqtt,
    'secure-mqttws': mqtt,
    http: rest,
    https: rest,
    ...overrides,
  }
  return {
    async probe(target, attempt, limits) {
      const problem = inputProblem(attempt)
      if (problem !== null) return notVerified('bad-input', problem)
      return inTime(async () => clients[target.protocol].probe(target, attempt, limits), limits)
    },
    async close() {
      smf.close()
    },
  }
}

/** What no broker takes is not sent to one; an empty password would be an anonymous login. */
function inputProblem({ username, password }: LoginAttempt): string | null {
  const text = password.reveal()
  if (username.length > USERNAME_MAX_LENGTH || !PRINTABLE.test(username)) {
    return `The client username is not 1 to ${USERNAME_MAX_LENGTH} printable ASCII characters.`
  }
  if (text.length > PASSWORD_MAX_LENGTH || !PRINTABLE.test(text)) {
    return `The password is not 1 to ${PASSWORD_MAX_LENGTH} printable ASCII characters.`
  }
  return null
}

const PRINTABLE = /^[\x20-\x7e]+$/

/** The last resort: a client that throws or hangs in spite of its promise. */
function inTime(probe: () => Promise<Verdict>, limits: ProbeLimits): Promise<Verdict> {
  return new Promise((resolve) => {
    let patience: NodeJS.Timeout | undefined
    // The client has the same deadline, and ends what it has open before it says so.
    const callOff = atDeadline(limits, () => {
      clearTimeout(patience)
      patience = setTimeout(() => resolve(TIMED_OUT), PATIENCE_MS)
    })
    probe()
      .catch((error: unknown) => notVerified('unknown', `The client failed with ${className(error)}.`))
      .then((verdict) => {
        callOff()
        clearTimeout(patience)
        resolve(verdict)
      })
  })
}

/** An error's text, and the name that it gives itself, may hold what the client was given. */
function className(error: unknown): string {
  const name = error instanceof Error ? error.constructor.name : ''
  return /^\w{1,60}$/.test(name) ? name : 'what is no error'
}
