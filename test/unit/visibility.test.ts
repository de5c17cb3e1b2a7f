import { describe, expect, it } from 'vitest'
import {
  type BrokerFactsForUse,
  explainBroker,
  explainVisibility,
  type ProductVersionFacts,
} from '../../src/domain/visibility.ts'

const broker: BrokerFactsForUse = {
  id: 'berlin',
  eventMeshName: 'Rail mesh',
  environmentName: 'Production',
  managementIsComplete: true,
  messaging: { host: 'berlin.example.com', protocols: [{ protocol: 'smf', port: 55_555 }] },
}
const version: ProductVersionFacts = {
  shared: true,
  state: 'RELEASED',
  public: true,
  planNames: ['Gold'],
  brokers: [broker],
}

describe('a product version is visible', () => {
  const failing = (facts: ProductVersionFacts) =>
    explainVisibility(facts)
      .rules.filter(({ holds }) => !holds)
      .map(({ rule }) => rule)

  it('when every rule holds, and says so', () => {
    const explanation = explainVisibility(version)
    expect(explanation.visible).toBe(true)
    expect(explanation.rules.map(({ rule, fix }) => [rule, fix])).toEqual([
      ['shared', null],
      ['released', null],
      ['associated', null],
      ['has-plan', null],
      ['public', null],
    ])
  })

  const unusable: BrokerFactsForUse = { ...broker, id: 'paris', messaging: null }
  it.each<[string, Partial<ProductVersionFacts>, string]>([
    ['it is not shared', { shared: false }, 'shared'],
    ['it is a draft', { state: 'DRAFT' }, 'released'],
    ['it is deprecated', { state: 'DEPRECATED' }, 'released'],
    ['it is retired', { state: 'RETIRED' }, 'released'],
    ['it is deleted', { state: 'DELETED' }, 'released'],
    ['it has no broker', { brokers: [] }, 'associated'],
    ['its only broker is unusable', { brokers: [unusable] }, 'associated'],
    ['it has no plan', { planNames: [] }, 'has-plan'],
    ['it is not public', { public: false }, 'public'],
  ])('not when %s', (_, change, rule) => {
    const explanation = explainVisibility({ ...version, ...change })
    expect(explanation.visible).toBe(false)
    expect(failing({ ...version, ...change })).toEqual([rule])
    expect(explanation.rules.find((one) => one.rule === rule)?.fix).toBeTruthy()
  })

  it('when one of several brokers is usable, and names the other', () => {
    const explanation = explainVisibility({ ...version, brokers: [unusable, broker] })
    expect(explanation.visible).toBe(true)
    expect(explanation.rules.find(({ rule }) => rule === 'associated')?.explanation).toBe(
      'The version is associated with berlin (environment Production). Not usable: paris.',
    )
  })

  it('not with several rules failing, and names them all', () => {
    expect(failing({ shared: false, state: 'DRAFT', public: false, planNames: [], brokers: [] })).toEqual([
      'shared',
      'released',
      'associated',
      'has-plan',
      'public',
    ])
  })
})

describe('a broker is usable', () => {
  it('when it is complete', () => {
    expect(explainBroker(broker)).toMatchObject({ usable: true, rules: [{ fix: null }, { fix: null }, { fix: null }] })
  })

  it.each<[string, Partial<BrokerFactsForUse>, string]>([
    ['it is in no event mesh', { eventMeshName: null, environmentName: null }, 'modelled-mesh'],
    ['its event mesh is in no environment', { environmentName: null }, 'modelled-mesh'],
    ['its management settings are incomplete', { managementIsComplete: false }, 'management-complete'],
    ['it has no messaging settings', { messaging: null }, 'messaging-complete'],
    ['it has no host', { messaging: { host: '', protocols: [{ protocol: 'smf', port: 1 }] } }, 'messaging-complete'],
    ['it exposes no protocol', { messaging: { host: 'h', protocols: [] } }, 'messaging-complete'],
  ])('not when %s', (_, change, rule) => {
    const { usable, rules } = explainBroker({ ...broker, ...change })
    expect(usable).toBe(false)
    expect(rules.filter(({ holds }) => !holds).map((one) => one.rule)).toEqual([rule])
  })
})
