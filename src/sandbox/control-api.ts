import { z } from 'zod'
import { FAULT_KINDS, type FaultRule } from './faults.ts'
import type { RequestCounters } from './request-counters.ts'
import type { Answer } from './semp-answer.ts'

/** What the control API steers; the same as a program does with a broker of its own. */
export interface ControlledBroker {
  readonly name: string
  readonly requests: RequestCounters
  objectCounts(): Readonly<Record<string, number>>
  setFaults(rules: readonly FaultRule[]): void
  setLatencyMs(latencyMs: number): void
  wipe(): void
}

const faultsSchema = z.array(
  z.strictObject({
    fault: z.enum(FAULT_KINDS),
    rate: z.number().min(0).max(1).optional(),
    match: z.strictObject({ method: z.string().optional(), path: z.string().optional() }).optional(),
    times: z.int().min(1).optional(),
    applied: z.boolean().optional(),
  }),
)
const latencySchema = z.strictObject({ latencyMs: z.number().min(0).max(600_000) })

const ok = (content: object): Answer => ({ httpStatus: 200, body: JSON.stringify(content) })
const refused = (httpStatus: number, message: string): Answer => ({ httpStatus, body: JSON.stringify({ message }) })

/**
 * `/sandbox/…` on the SEMP port, for programs that run the sandbox in a process of its own; the SEMP credentials, no
 * session. GET counters, GET objects, POST reset, POST faults, POST latency, POST clear. No secret ever passes here.
 */
export class ControlApi {
  readonly #broker: ControlledBroker

  constructor(broker: ControlledBroker) {
    this.#broker = broker
  }

  handle(method: string, target: string, body: string): Answer {
    const broker = this.#broker
    switch (`${method} ${target}`) {
      case 'GET /sandbox/counters':
        return ok({ broker: broker.name, ...broker.requests.snapshot() })
      case 'GET /sandbox/objects':
        return ok({ broker: broker.name, ...broker.objectCounts() })
      case 'POST /sandbox/reset':
        broker.requests.reset()
        return ok({})
      case 'POST /sandbox/clear':
        broker.wipe()
        return ok({})
      case 'POST /sandbox/faults':
        return withBody(faultsSchema, body, (rules) => broker.setFaults(rules as readonly FaultRule[]))
      case 'POST /sandbox/latency':
        return withBody(latencySchema, body, ({ latencyMs }) => broker.setLatencyMs(latencyMs))
      default:
        return refused(404, `${method} ${target} is not part of the control API`)
    }
  }
}

function withBody<Parsed>(schema: z.ZodType<Parsed>, body: string, act: (parsed: Parsed) => void): Answer {
  let json: unknown
  try {
    json = JSON.parse(body)
  } catch {
    return refused(400, 'the body is not JSON')
  }
  const parsed = schema.safeParse(json)
  if (!parsed.success) return refused(400, z.prettifyError(parsed.error))
  act(parsed.data)
  return ok({})
}
