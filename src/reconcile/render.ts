import type { AttributeValue } from '../domain/broker-object.ts'
import { type Action, actionRef, type Drift, type Plan, type Step } from './plan.ts'
import { REASONS } from './reasons.ts'

/** A plan as lines for a person: the same text in the command line, the console and the logs. Holds no secret. */
export function renderPlan(plan: Plan): readonly string[] {
  const title = `registration ${plan.registrationId} on broker ${plan.brokerId}, generation ${plan.generation}`
  if (isEmpty(plan)) return [`${title}: nothing to do`]
  return [
    title,
    ...(plan.refused === null ? [] : [`  ! refused: ${plan.refused.message}`]),
    ...plan.conflicts.map((conflict) => `  ! ${renderDrift(conflict)}`),
    ...plan.steps.map((step) => `  ${renderStep(step)}`),
    ...plan.notes.map((note) => `  i ${note}`),
  ]
}

export const isEmpty = (plan: Plan): boolean =>
  plan.steps.length === 0 && plan.conflicts.length === 0 && plan.refused === null && plan.drift.length === 0

export function renderStep({ action, disruptive, decision, because }: Step): string {
  const marks = [disruptive ? 'drops live clients' : null, decision === 'held' ? `held: ${because ?? ''}` : null]
  const suffix = marks.filter((mark) => mark !== null).join('; ')
  return `${renderAction(action)}${suffix === '' ? '' : ` [${suffix}]`}`
}

export function renderAction(action: Action): string {
  const { kind, name } = actionRef(action)
  const object = `${OBJECT_WORDS[kind]} ${name}`
  switch (action.type) {
    case 'create':
      return `+ create ${object} (${action.reason})`
    case 'update': {
      const changes = Object.entries(action.changes)
        .map(([attribute, { before, after }]) => `${attribute} ${value(before)} -> ${value(after)}`)
        .join(', ')
      return `~ update ${object}: ${changes} (${action.reason})`
    }
    case 'set-password':
      return `~ write the password of ${object}, version ${action.credentialVersion} (${action.reason})`
    case 'add-member':
      return `+ ${object}: add ${MEMBER_WORDS[action.memberKind]} ${action.member} (${action.reason})`
    case 'remove-member':
      return `- ${object}: remove ${MEMBER_WORDS[action.memberKind]} ${action.member} (${action.reason})`
    case 'delete':
      return `- delete ${object} (${action.reason})`
    default: {
      const unreachable: never = action
      return unreachable
    }
  }
}

/** What the objects of a broker are called, everywhere. */
export const OBJECT_WORDS = {
  clientProfile: 'client profile',
  aclProfile: 'ACL profile',
  clientUsername: 'client username',
  queue: 'queue',
} as const

export const MEMBER_WORDS = {
  publishTopicExceptions: 'publish exception',
  subscribeTopicExceptions: 'subscribe exception',
  publishTopicExceptionsMqtt: 'publish exception (MQTT syntax)',
  subscribeTopicExceptionsMqtt: 'subscribe exception (MQTT syntax)',
  subscriptions: 'subscription',
} as const

const value = (item: AttributeValue | null): string => (item === null ? 'unset' : String(item))

/** What is in the way and what a person can do about it. */
export function renderConflict({ object, after, reason }: Drift): string {
  const what = `the ${OBJECT_WORDS[object.kind]} ${object.name}`
  switch (reason) {
    case 'foreign-username':
      return `${what} exists and is not ours. Adopt it or choose another consumer key.`
    case 'profile-unsuitable': {
      const flags = Object.keys(after).join(', ')
      return `${what} is not ours and allows less than is needed. Switch on ${flags} on the broker.`
    }
    case 'depends-on-conflict':
      return `${what} needs an object that is in conflict. Settle that one first.`
    default:
      return `${what} exists and is not ours. Adopt it or remove it from the broker.`
  }
}

export function renderDrift(drift: Drift): string {
  const { kind, name } = drift.object
  return `${drift.kind}: ${OBJECT_WORDS[kind]} ${name}. ${REASONS[drift.reason]}`
}
