import type { AttributeValue } from '../domain/broker-object.ts'
import { KeymeshError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'
import { level } from './order.ts'
import type { Action, Step } from './plan.ts'
import type { BrokerPort } from './ports.ts'

export interface ApplyDependencies {
  readonly broker: BrokerPort
  /** Throws when the lease is lost or the generation moved on. Called before each write. */
  readonly beforeWrite: () => Promise<void>
  /** The stored secret of a client username, of exactly this version; throws when it moved on. */
  readonly secret: (clientUsername: string, version: number) => Promise<Secret>
  readonly signal?: AbortSignal
}

export interface Applied {
  readonly executed: readonly Action[]
  /** The first failure; steps of its level may have run, later levels have not. */
  readonly error: unknown
}

/** Runs the steps that policy lets run, level by level; the steps of one level run side by side. */
export async function apply(steps: readonly Step[], dependencies: ApplyDependencies): Promise<Applied> {
  const runnable = steps.filter((step) => step.decision === 'run').map((step) => step.action)
  const executed: Action[] = []
  for (const actions of byLevel(runnable)) {
    const results = await Promise.allSettled(actions.map((action) => execute(action, dependencies)))
    executed.push(...actions.filter((_, index) => results[index]?.status === 'fulfilled'))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) return { executed, error: failed.reason }
  }
  return { executed, error: null }
}

function byLevel(actions: readonly Action[]): readonly (readonly Action[])[] {
  const levels = new Map<number, Action[]>()
  for (const action of actions) {
    const list = levels.get(level(action)) ?? []
    list.push(action)
    levels.set(level(action), list)
  }
  return [...levels.entries()].sort(([a], [b]) => a - b).map(([, list]) => list)
}

async function execute(action: Action, { broker, beforeWrite, secret, signal }: ApplyDependencies): Promise<void> {
  switch (action.type) {
    case 'create': {
      const { object, credentialVersion } = action
      const password = credentialVersion === undefined ? null : await secret(object.name, credentialVersion)
      await beforeWrite()
      return broker.create(object, password, signal)
    }
    case 'update':
      return update(action, { broker, beforeWrite, secret, ...(signal === undefined ? {} : { signal }) })
    case 'set-password': {
      const password = await secret(action.name, action.credentialVersion)
      await beforeWrite()
      return broker.update(action, {}, password, signal)
    }
    case 'add-member':
      await beforeWrite()
      return broker.addMember(action, action.memberKind, action.member, signal)
    case 'remove-member':
      await beforeWrite()
      return broker.removeMember(action, action.memberKind, action.member, signal)
    case 'delete':
      await beforeWrite()
      return broker.delete(action, signal)
    default: {
      const unreachable: never = action
      return unreachable
    }
  }
}

/** SEMP 2.30 and older refuse some changes on an enabled object: off, change, on again, as the plan announced. */
async function update(
  action: Extract<Action, { type: 'update' }>,
  { broker, beforeWrite, signal }: ApplyDependencies,
): Promise<void> {
  const attributes: Record<string, AttributeValue> = {}
  for (const [name, change] of Object.entries(action.changes)) attributes[name] = change.after
  const switches = action.disables.filter((name) => attributes[name] === undefined)
  if (switches.length > 0) {
    await beforeWrite()
    await broker.update(action, all(switches, false), null, signal)
  }
  await beforeWrite()
  await broker.update(action, attributes, null, signal)
  if (switches.length > 0) {
    await beforeWrite()
    await broker.update(action, all(switches, true), null, signal)
  }
}

const all = (names: readonly string[], value: boolean): Record<string, AttributeValue> =>
  Object.fromEntries(names.map((name) => [name, value]))

export const supersededError = (what: string): KeymeshError =>
  new KeymeshError({
    code: 'SUPERSEDED',
    fate: 'retry',
    message: `${what} changed, or another worker took over, while it was being reconciled.`,
    hint: 'The next run starts from the new state; nothing needs to be done.',
  })
