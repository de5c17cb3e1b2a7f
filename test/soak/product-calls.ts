import type { ClassOfServicePolicy } from '../../src/domain/catalogue.ts'
import { brokerIdOf, EVENT_API_VERSION, EVENT_APIS, PLANS, policyOf } from './catalogue.ts'
import type { Change, Version } from './life-facts.ts'
import { pick } from './steps.ts'
import type { Call, Calls, FoundVersion, Targets } from './targets.ts'

const PRODUCTS = '/api/v2/portal/products'
const MOST_BROKERS = 3

export function changePlan(targets: Targets): Calls {
  const found = targets.version()
  if (found === null) return null
  const { number, picks } = targets
  const plan = pick(PLANS, picks[2])
  const policy = found.content.plans[plan] ?? policyOf(plan)
  const changed: ClassOfServicePolicy = {
    ...policy,
    accessType: picks[3] < 0.3 ? other(policy.accessType) : policy.accessType,
    maximumTimeToLive: 60 * (1 + Math.floor(picks[3] * 100)),
    maxMsgSpoolUsage: 10 + number,
  }
  return [edited(found, { plans: { ...found.content.plans, [plan]: changed } })]
}

const other = (accessType: ClassOfServicePolicy['accessType']): ClassOfServicePolicy['accessType'] =>
  accessType === 'exclusive' ? 'non-exclusive' : 'exclusive'

export function associate(targets: Targets): Calls {
  const all = range(targets.life.brokers)
  const most = Math.min(MOST_BROKERS, all.length)
  const found = targets.version(({ content }) => content.brokers.length < most)
  if (found === null) return null
  const others = all.filter((broker) => !found.content.brokers.includes(broker))
  return [edited(found, { brokers: [...found.content.brokers, pick(others, targets.picks[2])] })]
}

export function dissociate(targets: Targets): Calls {
  const found = targets.version(({ content }) => content.brokers.length > 1)
  if (found === null) return null
  const gone = pick(found.content.brokers, targets.picks[2])
  return [edited(found, { brokers: found.content.brokers.filter((broker) => broker !== gone) })]
}

export function changeEventApis(targets: Targets): Calls {
  const found = targets.version()
  if (found === null) return null
  const count = 1 + Math.floor(targets.picks[2] * EVENT_APIS.length)
  const from = Math.floor(targets.picks[3] * EVENT_APIS.length)
  const eventApis = range(count).map((index) => EVENT_APIS[(from + index) % EVENT_APIS.length] ?? 'paid')
  return [edited(found, { eventApis })]
}

/** A newer version, which new requests are for; those that are there stay with theirs. */
export function release(targets: Targets): Calls {
  const found = targets.version()
  if (found === null) return null
  const { product, content } = found
  const version = `1.${targets.number}.0`
  const { state: _state, ...fields } = bodyOf(content)
  const path = `${PRODUCTS}/${product}/versions`
  const change: Change = { type: 'version', product, version, content: { ...content, state: 'RELEASED' } }
  return [
    { method: 'POST', path, body: { version, ...fields }, change: null },
    { method: 'PATCH', path: `${path}/${version}`, body: { state: 'RELEASED' }, change },
  ]
}

/** One step nearer to its end, while a newer version is there. */
export function retire(targets: Targets): Calls {
  const found = targets.version(({ product, version }) => targets.life.shownVersion(product) !== version)
  return found && [edited(found, { state: found.content.state === 'RELEASED' ? 'DEPRECATED' : 'RETIRED' })]
}

function edited({ product, version, content }: FoundVersion, change: Partial<Version>): Call {
  const changed = { ...content, ...change }
  const { state, ...fields } = bodyOf(changed)
  return {
    method: 'PATCH',
    path: `${PRODUCTS}/${product}/versions/${version}`,
    body: change.state === undefined ? fields : { state },
    change: { type: 'version', product, version, content: changed },
  }
}

function bodyOf({ state, approval, eventApis, brokers, plans }: Version) {
  return {
    state,
    approvalType: approval,
    public: true,
    eventApis: eventApis.map((id) => ({ id, version: EVENT_API_VERSION })),
    brokers: brokers.map(brokerIdOf),
    plans: Object.entries(plans).map(([id, policy]) => ({ id, name: id, ...policy })),
  }
}

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index)
