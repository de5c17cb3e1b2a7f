import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import {
  admission,
  afterFailure,
  type BrokerHealth,
  HEALTHY,
  isBrokerTrouble,
  PROBER_MS,
} from '../../src/reconcile/broker-health.ts'

const failing = (nowMs: number, prober: string | null = null) => ({ nowMs, random: 0, prober })

function failed(times: number, nowMs = 0): BrokerHealth {
  let health: BrokerHealth = HEALTHY
  for (let count = 0; count < times; count += 1) health = afterFailure(health, failing(nowMs))
  return health
}

describe('the health of a broker', () => {
  it('takes work until five failures in a row', () => {
    expect(admission(failed(4), 0)).toEqual({ to: 'run' })
    expect(failed(5)).toMatchObject({ state: 'open', failures: 5 })
    expect(admission(failed(5), 0)).toMatchObject({ to: 'rest' })
  })

  it('does not count what began before it was found to be sick', () => {
    const open = failed(5)
    expect(afterFailure(open, failing(1_000))).toBe(open)
  })

  it('lets one run find out after its rest, and rests longer when that fails', () => {
    const open = failed(5)
    const restMs = open.state === 'open' ? open.retryAtMs : 0
    expect(admission(open, restMs)).toEqual({ to: 'probe' })
    const probing: BrokerHealth = { state: 'half-open', failures: 5, prober: 'a', proberUntilMs: restMs + PROBER_MS }
    expect(admission(probing, restMs + 1)).toMatchObject({ to: 'rest' })
    expect(afterFailure(probing, failing(restMs, 'b'))).toBe(probing)
    const again = afterFailure(probing, failing(restMs, 'a'))
    expect(again.state === 'open' && again.retryAtMs - restMs).toBeGreaterThan(restMs)
  })

  it('gives the turn of a prober that died to another', () => {
    const probing: BrokerHealth = { state: 'half-open', failures: 5, prober: 'a', proberUntilMs: 1_000 }
    expect(admission(probing, 1_000)).toEqual({ to: 'probe' })
  })

  it('never rests without a next try, and never for more than its bound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(120_000), { maxLength: 60 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (gaps, random) => {
          let health: BrokerHealth = HEALTHY
          let nowMs = 0
          for (const gap of gaps) {
            nowMs += gap
            const admitted = admission(health, nowMs)
            if (admitted.to === 'rest') {
              expect(admitted.untilMs - nowMs).toBeLessThanOrEqual(120_000)
              continue
            }
            if (admitted.to === 'probe') {
              health = { state: 'half-open', failures: health.failures, prober: 'me', proberUntilMs: nowMs + PROBER_MS }
            }
            health = afterFailure(health, { nowMs, random, prober: 'me' })
          }
        },
      ),
    )
  })

  it.each([
    ['a timeout', 'BROKER_TIMEOUT', true],
    ['a refused SEMP login', 'SEMP_LOGIN_REFUSED', true],
    ['a missing message VPN', 'MSG_VPN_NOT_FOUND', true],
    ['its own rest', 'BROKER_RESTING', false],
    ['a conflict', 'ALREADY_EXISTS', false],
    ['a pause', 'PAUSED', false],
    ['a run that was overtaken', 'SUPERSEDED', false],
    ['a value that the broker refused', 'SEMP_INVALID_PARAMETER', false],
  ])('%s counts as trouble of the broker: %s %s', (_, code, expected) => {
    expect(isBrokerTrouble(new KeymeshError({ code, fate: 'retry', message: 'no' }))).toBe(expected)
  })

  it('an error of the database is no trouble of the broker', () => {
    expect(isBrokerTrouble(new Error('terminating connection'))).toBe(false)
  })
})
