import type { Channel, ClassOfServicePolicy } from '../../src/domain/catalogue.ts'
import type { EventApiTopics } from './wanted.ts'

/** What all products of a soak are made of. */
export const EVENT_APIS = ['placed', 'paid', 'shipped', 'cancel'] as const
export const EVENT_API_VERSION = '1.0.0'
/** Parameter of every topic. */
export const REGION = 'region'
export const REGIONS = ['eu', 'us', 'asia', 'af*'] as const
export const PLANS = ['reliable', 'separate', 'direct'] as const

/** Everybody may publish; to the last one nobody may subscribe. */
export function channelsOf(eventApi: string): readonly Channel[] {
  const channel = (name: string, isForSubscribers: boolean): Channel => ({
    name,
    clientMayPublish: !isForSubscribers,
    clientMaySubscribe: isForSubscribers,
    parameterEnums: {},
  })
  const commands = channel(`shop/{${REGION}}/${eventApi}/ask`, false)
  return eventApi === 'cancel' ? [commands] : [commands, channel(`shop/{${REGION}}/${eventApi}/told`, true)]
}

/** Of a registration with this filter, null for none. */
export function topicsOf(eventApi: string, regions: readonly string[] | null): EventApiTopics {
  const each = (regions ?? ['*']).map((region) => `shop/${region}/${eventApi}`)
  return {
    publish: each.map((topic) => `${topic}/ask`),
    subscribe: eventApi === 'cancel' ? [] : each.map((topic) => `${topic}/told`),
  }
}

export const policyOf = (plan: string): ClassOfServicePolicy => ({
  messageDeliveryMode: plan === 'direct' ? 'direct' : 'guaranteed',
  accessType: 'exclusive',
  queueType: plan === 'separate' ? 'single' : 'combined',
  maximumTimeToLive: 3600,
  maxMsgSpoolUsage: 50,
})

/** Ids of brokers, which the API and the log know them by. */
export const brokerIdOf = (index: number): string => `broker${index}`
