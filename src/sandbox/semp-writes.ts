import type { Values } from './attribute.ts'
import { type BrokerModel, notFound, RESERVED_NAME } from './broker-model.ts'
import type { ObjectCollection, StoredObject } from './object-collection.ts'
import { ACL_PROFILES, CLIENT_PROFILES, CLIENT_USERNAMES, completeValues, MSG_VPNS, QUEUES } from './object-tables.ts'
import { checkRequiresDisable, dropDisturbed } from './semp-disruption.ts'
import { SempFailure } from './semp-errors.ts'
import type { CollectionPath, PathStep } from './semp-path.ts'
import { BodyReader, type WriteMethod, type WriteValues } from './semp-validate.ts'

type Body = Readonly<Record<string, unknown>>

const PROFILE_REFERENCES = [
  ['aclProfileName', ACL_PROFILES],
  ['clientProfileName', CLIENT_PROFILES],
] as const

/** The one reserved name that an administrator creates. */
const DEAD_MESSAGE_QUEUE = '#DEAD_MSG_QUEUE'

const unauthorized = (method: string) =>
  new SempFailure('UNAUTHORIZED', `Problem with ${method}: Command prohibited due to Authorization Access Level`)

/** The writes of the configuration API on one broker; each is atomic. All throw `SempFailure`. */
export class SempWrites {
  readonly #model: BrokerModel

  constructor(model: BrokerModel) {
    this.#model = model
  }

  create(path: CollectionPath, body: Body): StoredObject {
    const owner = this.#model.owner(path.parents)
    const given = this.#read('POST', path, null, body)
    const key = path.table.keys.map((name) => given.values[name]).join(',')
    return this.#add('POST', path, owner, key, given)
  }

  /** PUT and PATCH; a PUT creates what is absent. */
  update(method: 'PUT' | 'PATCH', path: CollectionPath, step: PathStep, body: Body): StoredObject {
    if (!path.table.updatable) {
      throw new SempFailure('NOT_SUPPORTED', `Problem with ${method}: The ${path.table.label} has no ${method}.`)
    }
    const owner = this.#model.owner(path.parents)
    const existing = this.#model.childOf(owner, path.table)?.get(step.key)
    if (existing === undefined && method === 'PATCH') throw notFound(step)
    const given = this.#read(method, path, step, body)
    if (existing === undefined) return this.#add(method, path, owner, step.key, given, step)
    const base = method === 'PATCH' ? existing.values : this.#replacementBase(path, existing)
    const change = { table: path.table, method, before: existing.values, after: { ...base, ...given.values } }
    this.#checkReferences(method, path, owner, change.after)
    checkRequiresDisable(this.#model, change)
    existing.values = change.after
    if (Object.keys(given.secrets).length > 0) existing.secrets = { ...existing.secrets, ...given.secrets }
    dropDisturbed(this.#model.accounts(path.parents[0]?.key ?? step.key), change)
    return existing
  }

  delete(path: CollectionPath, step: PathStep): void {
    const { table } = path
    if (table === MSG_VPNS || !this.#model.mayChange(table.patchScope)) throw unauthorized('DELETE')
    const owner = this.#model.owner(path.parents)
    const collection = this.#model.childOf(owner, table)
    const object = collection?.get(step.key)
    if (collection === undefined || object === undefined) throw notFound(step)
    const msgVpnName = path.parents[0]?.key ?? ''
    const isReserved = path.parents.length === 1 && step.key === RESERVED_NAME && table !== QUEUES
    if (isReserved) {
      throw new SempFailure('NOT_ALLOWED', `Problem with DELETE: The ${table.label} "default" cannot be deleted.`)
    }
    this.#releaseReferences(msgVpnName, path, step.key)
    collection.delete(step.key)
    if (table === CLIENT_USERNAMES) this.#model.accounts(msgVpnName).dropClients(step.key)
    if (table === QUEUES) {
      this.#model.accounts(msgVpnName).dropConsumers(step.key)
      this.#model.setSpool(msgVpnName, step.key, null)
    }
  }

  #read(method: WriteMethod, path: CollectionPath, step: PathStep | null, body: Body): WriteValues {
    const identity = Object.fromEntries(
      [...path.parents, ...(step === null ? [] : [step])].flatMap(({ table, identity }) =>
        table.keys.map((name, index) => [name, identity[index] ?? '']),
      ),
    )
    const mayChange = this.#model.mayChange.bind(this.#model)
    return new BodyReader({ table: path.table, method, body, identity, mayChange }).read()
  }

  #add(
    method: string,
    path: CollectionPath,
    owner: StoredObject | null,
    key: string,
    given: WriteValues,
    step?: PathStep,
  ): StoredObject {
    const { table } = path
    if (table === MSG_VPNS || !this.#model.mayChange(table.patchScope)) throw unauthorized(method)
    const identity = step ? Object.fromEntries(table.keys.map((name, index) => [name, step.identity[index] ?? ''])) : {}
    if (step) this.#read('POST', path, null, identity)
    const values = completeValues(table, { ...identity, ...given.values })
    if (path.parents.length === 1 && key.startsWith('#') && key !== DEAD_MESSAGE_QUEUE) {
      throw new SempFailure('INVALID_PARAMETER', `Problem with ${method}: Names that begin with "#" are reserved.`)
    }
    if (this.#model.childOf(owner, table)?.get(key) !== undefined) {
      throw new SempFailure('ALREADY_EXISTS', `Problem with ${method}: ${table.label} ${key} already exists.`)
    }
    this.#checkReferences(method, path, owner, values)
    const object = this.#model.childForWriting(owner, table).add(key, values)
    if (Object.keys(given.secrets).length > 0) object.secrets = given.secrets
    return object
  }

  /** What a PUT starts from: defaults, the identity, and what the SEMP user may not modify. */
  #replacementBase(path: CollectionPath, existing: StoredObject): Values {
    const { table } = path
    const base: Values = { ...table.defaults }
    for (const name of Object.keys(base)) {
      const kept = existing.values[name]
      const scope = table.attributes[name]?.patchScope ?? table.patchScope
      if (kept !== undefined && (table.keys.includes(name) || !this.#model.mayChange(scope))) base[name] = kept
    }
    return base
  }

  #checkReferences(method: string, path: CollectionPath, owner: StoredObject | null, values: Values): void {
    if (path.table !== CLIENT_USERNAMES) return
    for (const [name, table] of PROFILE_REFERENCES) {
      const profileName = String(values[name])
      if (this.#model.childOf(owner, table)?.get(profileName) === undefined) {
        throw new SempFailure(
          'INVALID_PARAMETER',
          `Problem with ${method}: The ${table.label} "${profileName}" that "${name}" names does not exist.`,
        )
      }
    }
  }

  /** A profile in use by an enabled username stays; disabled usernames fall back to the profile `default`. */
  #releaseReferences(msgVpnName: string, path: CollectionPath, profileName: string): void {
    const reference = PROFILE_REFERENCES.find(([, table]) => table === path.table)
    const usernames: ObjectCollection | undefined = reference && this.#model.collection(msgVpnName, CLIENT_USERNAMES)
    if (reference === undefined || usernames === undefined) return
    const users: StoredObject[] = []
    for (const username of usernames.objects()) {
      if (username.values[reference[0]] === profileName) users.push(username)
    }
    if (users.some((username) => username.values.enabled === true)) {
      throw path.table === ACL_PROFILES
        ? new SempFailure(
            'NOT_ALLOWED',
            'Problem with DELETE: Cannot delete the ACL profile because there are client-usernames configured against it in not shutdown state.',
          )
        : new SempFailure(
            'CONFIGDB_OBJECT_DEPENDENCY',
            "Problem with DELETE: Can't delete client profile because there are client-usernames configured against it in not shutdown state.",
          )
    }
    for (const username of users) username.values = { ...username.values, [reference[0]]: RESERVED_NAME }
  }
}
