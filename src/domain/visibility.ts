import type { MessagingSettings, ProductState } from './catalogue.ts'

/** One rule of the specification, section 1, and how it stands. */
export interface RuleResult<Rule extends string> {
  readonly rule: Rule
  readonly holds: boolean
  /** What is the case, for a person. */
  readonly explanation: string
  /** What to do about it; null when the rule holds. */
  readonly fix: string | null
}

export type VisibilityRule = 'shared' | 'released' | 'associated' | 'has-plan' | 'public'

export interface ProductVersionFacts {
  readonly shared: boolean
  readonly state: ProductState
  readonly public: boolean
  readonly planNames: readonly string[]
  readonly brokers: readonly BrokerFactsForUse[]
}

export interface VisibilityExplanation {
  readonly visible: boolean
  readonly rules: readonly RuleResult<VisibilityRule>[]
}

/** Why a product version is listed by the API, or is not. */
export function explainVisibility(facts: ProductVersionFacts): VisibilityExplanation {
  const { shared, state, planNames } = facts
  const rules = [
    result(
      'shared',
      shared,
      shared ? 'The product is shared.' : 'The product is not shared.',
      'Set `shared: true` on the product.',
    ),
    result('released', state === 'RELEASED', `The version is in state ${state}.`, releaseFix(state)),
    associated(facts.brokers),
    result(
      'has-plan',
      planNames.length > 0,
      planNames.length > 0 ? `The version has the plans ${planNames.join(', ')}.` : 'The version has no plan.',
      'Add at least one plan to the version.',
    ),
    result(
      'public',
      facts.public,
      facts.public ? 'The version is publicly available.' : 'The version is not publicly available.',
      'Set `public: true` on the version.',
    ),
  ] as const
  return { visible: rules.every(({ holds }) => holds), rules }
}

function releaseFix(state: ProductState): string {
  return state === 'DRAFT'
    ? 'Set `state: RELEASED` on the version.'
    : 'Release a newer version: this one is past its release.'
}

/** An environment is associated through a broker whose event mesh is modelled. */
function associated(brokers: readonly BrokerFactsForUse[]): RuleResult<'associated'> {
  const unusable = brokers.filter((broker) => !explainBroker(broker).usable).map(({ id }) => id)
  const usable = brokers.filter((broker) => !unusable.includes(broker.id))
  const names = [...new Set(usable.map((broker) => `${broker.id} (environment ${broker.environmentName})`))].join(', ')
  const others = unusable.length > 0 ? ` Not usable: ${unusable.join(', ')}.` : ''
  if (usable.length > 0) return result('associated', true, `The version is associated with ${names}.${others}`, '')
  return brokers.length === 0
    ? result(
        'associated',
        false,
        'The version is associated with no broker.',
        'Add a broker to the `brokers` of the version.',
      )
    : result(
        'associated',
        false,
        `No associated broker is usable.${others}`,
        'Complete at least one of these brokers; `explain broker ID` says what it lacks.',
      )
}

export type BrokerRule = 'modelled-mesh' | 'management-complete' | 'messaging-complete'

export interface BrokerFactsForUse {
  readonly id: string
  /** Of the event mesh, where the broker names one that exists. */
  readonly eventMeshName: string | null
  /** Of the environment of that event mesh, where it exists. */
  readonly environmentName: string | null
  /** True when address, message VPN, username and password are all there. */
  readonly managementIsComplete: boolean
  readonly messaging: Pick<MessagingSettings, 'host' | 'protocols'> | null
}

export interface BrokerExplanation {
  readonly usable: boolean
  readonly rules: readonly RuleResult<BrokerRule>[]
}

/** Why a broker can be used in a product, or cannot. */
export function explainBroker(broker: BrokerFactsForUse): BrokerExplanation {
  const { eventMeshName, environmentName, messaging } = broker
  const protocols = messaging?.protocols.map(({ protocol }) => protocol) ?? []
  const hasHost = messaging !== null && messaging.host !== ''
  const rules = [
    result(
      'modelled-mesh',
      eventMeshName !== null && environmentName !== null,
      meshExplanation(eventMeshName, environmentName),
      'Give the broker an `eventMesh` that has an `environment`.',
    ),
    result(
      'management-complete',
      broker.managementIsComplete,
      broker.managementIsComplete ? 'The management settings are complete.' : 'The management settings are incomplete.',
      'Give `management` a `url`, `msgVpn`, `username` and `password`.',
    ),
    result(
      'messaging-complete',
      hasHost && protocols.length > 0,
      messagingExplanation(hasHost, protocols),
      'Give `messaging` a `host` and every protocol that clients use, with its port.',
    ),
  ] as const
  return { usable: rules.every(({ holds }) => holds), rules }
}

function meshExplanation(eventMeshName: string | null, environmentName: string | null): string {
  if (eventMeshName === null) return 'The broker is connected to no modelled event mesh.'
  return environmentName === null
    ? `The event mesh ${eventMeshName} belongs to no environment.`
    : `The broker is in the event mesh ${eventMeshName} of the environment ${environmentName}.`
}

function messagingExplanation(hasHost: boolean, protocols: readonly string[]): string {
  if (!hasHost) return 'The messaging settings have no host.'
  return protocols.length > 0
    ? `Clients reach the broker over ${protocols.join(', ')}.`
    : 'The messaging settings expose no protocol.'
}

function result<Rule extends string>(rule: Rule, holds: boolean, explanation: string, fix: string): RuleResult<Rule> {
  return { rule, holds, explanation, fix: holds ? null : fix }
}
