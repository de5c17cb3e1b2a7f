import type { Life } from './life.ts'
import * as products from './product-calls.ts'
import * as registrations from './registration-calls.ts'
import type { CallKind, Step } from './steps.ts'
import { type Call, type CallSettings, type Calls, Targets } from './targets.ts'

const CALLS: Readonly<Record<CallKind, (targets: Targets) => Calls>> = {
  join: registrations.join,
  leave: registrations.leave,
  rename: registrations.rename,
  filter: registrations.filter,
  unfilter: registrations.unfilter,
  request: registrations.request,
  decide: registrations.decide,
  revoke: registrations.revoke,
  'ask-again': registrations.askAgain,
  'drop-request': registrations.dropRequest,
  'add-credential': registrations.addCredential,
  rotate: registrations.rotate,
  'end-credential': registrations.endCredential,
  'reuse-key': registrations.reuseKey,
  expire: registrations.expire,
  'change-plan': products.changePlan,
  associate: products.associate,
  dissociate: products.dissociate,
  'change-event-apis': products.changeEventApis,
  release: products.release,
  retire: products.retire,
}

/** Pure: what a step comes to, as the life stands; null when there is nothing that it could be done to. */
export function callsOf(
  what: CallKind,
  step: Pick<Step, 'number' | 'picks'>,
  life: Life,
  settings: CallSettings,
): Calls {
  const targets = new Targets(step, life, settings)
  if (what === 'join' && life.registrations.size > settings.registrations * 1.2) return registrations.leave(targets)
  if (what === 'leave' && life.registrations.size < settings.registrations * 0.8) return registrations.join(targets)
  return CALLS[what](targets)
}

/** A new credential of a registration, with a key that a hand has taken on a broker before. */
export function squattedCredential(
  step: Pick<Step, 'number' | 'picks'>,
  life: Life,
  settings: CallSettings,
  registration: string,
): { readonly key: string; readonly call: Call } {
  const key = `squatted-${step.number}`
  const targets = new Targets(step, life, settings)
  return { key, call: registrations.newCredential(targets, { registration, key, expiresAtMs: null }) }
}
