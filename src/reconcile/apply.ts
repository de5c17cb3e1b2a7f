import { type AttributeValue, type ObjectRef, objectKey } from '../domain/broker-object.ts'
import { codeOf, KeymeshError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'
import { level } from './order.ts'
import { type Action, actionRef, type Step } from './plan.ts'
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
  /** Objects that were certainly not created: never sent, or the broker said that somebody else's has the name. */
  readonly notCreated: readonly ObjectRef[]
  /** Objects that a write went out for, whatever came of it. */
  readonly sent: readonly ObjectRef[]
  /** The first failure; steps of its level may have run, later levels have not. */
  readonly error: unknown
}

/** Runs the steps that policy lets run, level by level; the steps of one level run side by side. */
export async function apply(steps: readonly Step[], dependencies: ApplyDependencies): Promise<Applied> {
  const runnable = steps.filter((step) => step.decision === 'run').map((step) => step.action)
  const executed: Action[] = []
  const mayExist = new Set<Action>()
  const sent = new Map<string, ObjectRef>()
  const run = (action: Action): Promise<void> => {
    const beforeWrite = async (): Promise<void> => {
      await dependencies.beforeWrite()
      const { kind, name } = actionRef(action)
      sent.set(objectKey({ kind, name }), { kind, name })
    }
    return execute(action, { ...dependencies, beforeWrite, mayExist })
  }
  for (const actions of byLevel(runnable)) {
    const results = await Promise.allSettled(actions.map(run))
    executed.push(...actions.filter((_, index) => results[index]?.status === 'fulfilled'))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed === undefined) continue
    const notCreated = runnable.filter((action) => action.type === 'create' && !mayExist.has(action)).map(actionRef)
    return { executed, notCreated, sent: [...sent.values()], error: failed.reason }
  }
  return { executed, notCreated: [], sent: [...sent.values()], error: null }
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

interface ExecuteDependencies extends ApplyDependencies {
  /** Creates that went out, unless the broker said that the name was taken. */
  readonly mayExist: Set<Action>
}

async function execute(action: Action, dependencies: ExecuteDependencies): Promise<void> {
  const { broker, beforeWrite, secret, signal } = dependencies
  switch (action.type) {
    case 'create':
      return create(action, dependencies)
    case 'update':
      return update(action, dependencies)
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

async function create(
  action: Extract<Action, { type: 'create' }>,
  { broker, beforeWrite, secret, mayExist, signal }: ExecuteDependencies,
): Promise<void> {
  const { object, credentialVersion } = action
  const password = credentialVersion === undefined ? null : await secret(object.name, credentialVersion)
  await beforeWrite()
  mayExist.add(action)
  try {
    await broker.create(object, password, signal)
  } catch (error) {
    if (codeOf(error) === 'ALREADY_EXISTS') mayExist.delete(action)
    throw error
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
  const switchOn = async (): Promise<void> => {
    if (switches.length === 0) return
    await beforeWrite()
    // Without the signal: work that is told to stop does not leave an object switched off.
    await broker.update(action, all(switches, true), null)
  }
  try {
    await beforeWrite()
    await broker.update(action, attributes, null, signal)
  } catch (error) {
    // A refused change must not leave clients locked out. Where even this fails, the next run switches it on.
    await switchOn().catch(() => undefined)
    throw error
  }
  await switchOn()
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

/** A credential moved to this registration, and a run of the one that had it may still write to its object. */
export const stillInUseError = ({ kind, name }: ObjectRef, registrationId: string): KeymeshError =>
  new KeymeshError({
    code: 'SUPERSEDED',
    fate: 'retry',
    message: `${kind} ${name} was registration ${registrationId}'s until now, and a run of that one is under way.`,
    hint: 'The next run takes it over; nothing needs to be done.',
  })
