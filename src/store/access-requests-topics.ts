import { InvalidInputError } from '../domain/errors.ts'
import type { Filters } from '../domain/registration.ts'
import { deriveTopics } from '../domain/topics.ts'
import type { GrantedRequest } from './registration-view-permissions.ts'

export interface TopicsOwner {
  readonly filters: Filters
  readonly maxTopics: number
}

/**
 * Why brokers would refuse what the requests ask for: by access request, and by broker where all together are too many.
 * As the reconciler finds it later, when nobody waits for the answer.
 */
export function topicProblems(owner: TopicsOwner, requests: readonly GrantedRequest[]): ReadonlyMap<string, string> {
  const problems = new Map<string, string>()
  const onBroker = new Map<string, { readonly publish: Set<string>; readonly subscribe: Set<string> }>()
  for (const { id, filters, version } of requests) {
    const channels = version.eventApis.flatMap((eventApi) => eventApi.channels)
    const derived = deriveTopics({ channels, filters: [filters, owner.filters], maxTopics: owner.maxTopics })
    if (!derived.ok) {
      problems.set(JSON.stringify(['accessRequest', id]), derived.problem)
      continue
    }
    for (const broker of version.brokers) {
      const all = onBroker.get(broker.id) ?? { publish: new Set(), subscribe: new Set() }
      onBroker.set(broker.id, all)
      for (const topic of derived.publish) all.publish.add(topic)
      for (const topic of derived.subscribe) all.subscribe.add(topic)
    }
  }
  for (const [brokerId, { publish, subscribe }] of onBroker) {
    const count = Math.max(publish.size, subscribe.size)
    if (count <= owner.maxTopics) continue
    const message = `The registration would have ${count} topics, ${owner.maxTopics} are allowed: narrow them with filters.`
    problems.set(JSON.stringify(['broker', brokerId]), message)
  }
  return problems
}

/** Refuses a change that makes a problem; what was wrong before, by the catalogue, does not stop other changes. */
export function refuseNewProblems(
  field: string,
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): void {
  const made = [...after].filter(([where]) => !before.has(where)).map(([, message]) => message)
  if (made.length === 0) return
  throw new InvalidInputError(
    'The request',
    [...new Set(made)].map((message) => ({ path: field, message })),
  )
}
