import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSolaceBroker } from '../../src/brokers/solace/solace-broker.ts'
import { OBJECT_KINDS, type ObjectKind, type ObjectRef } from '../../src/domain/broker-object.ts'
import type { ManagementSettings } from '../../src/domain/catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { BrokerPort } from '../../src/reconcile/ports.ts'
import type { ContractSubject } from './broker-port-contract.ts'

/** A broker that somebody gave the tests, which others may use too. */
export interface GivenBroker {
  readonly settings: ManagementSettings
  readonly password: Secret
  /** Whether the SEMP user may write client profiles. */
  readonly clientProfiles: boolean
}

type Environment = Readonly<Record<string, string | undefined>>

/** Null when `KEYMESH_TEST_SEMP_URL` is not set. Throws when what belongs to it is missing. */
export function givenBroker(env: Environment): GivenBroker | null {
  const read = (name: string): string | undefined => env[`KEYMESH_TEST_SEMP_${name}`] || undefined
  const need = (name: string): string => {
    const value = read(name)
    if (value === undefined) throw new Error(`KEYMESH_TEST_SEMP_URL is set, and KEYMESH_TEST_SEMP_${name} is not`)
    return value
  }
  const url = read('URL')
  if (url === undefined) return null
  const caFile = read('CA_FILE')
  return {
    settings: {
      url,
      msgVpnName: need('VPN'),
      username: need('USERNAME'),
      maxConcurrentRequests: 8,
      requestTimeoutMs: 30_000,
      ...(caFile === undefined ? {} : { caCertificate: readFileSync(caFile, 'utf8') }),
    },
    password: new Secret(need('PASSWORD')),
    clientProfiles: read('CLIENT_PROFILES') !== 'false',
  }
}

/** Begins the names of one run, so that they are nobody else's. */
export const newPrefix = (): string => `kt${randomBytes(4).toString('hex')}-`

/** What uses others first. */
const DELETION_ORDER: readonly ObjectKind[] = ['clientUsername', 'queue', 'aclProfile', 'clientProfile']

/** A subject of the contract on the broker. Disposing it deletes what was created through it, and nothing else. */
export async function subjectOn({ settings, password }: GivenBroker): Promise<ContractSubject> {
  const port = createSolaceBroker(settings, password, {})
  const created: ObjectRef[] = []
  return {
    port: remembering(port, created),
    async [Symbol.asyncDispose]() {
      await port.close()
      // The contract may have closed the other one in the middle of anything.
      const tidy = createSolaceBroker(settings, password, {})
      try {
        if (created.length > 0) await tidy.facts()
        for (const kind of DELETION_ORDER) {
          await Promise.all(created.filter((ref) => ref.kind === kind).map((ref) => tidy.delete(ref)))
        }
      } finally {
        await tidy.close()
      }
    },
  }
}

/** What is certainly not ours, since its name was taken, is not remembered. */
function remembering(port: BrokerPort, created: ObjectRef[]): BrokerPort {
  return {
    facts: (...given) => port.facts(...given),
    get: (...given) => port.get(...given),
    list: (...given) => port.list(...given),
    members: (...given) => port.members(...given),
    queuedMessages: (...given) => port.queuedMessages(...given),
    connections: (...given) => port.connections(...given),
    async create(object, ...rest) {
      try {
        await port.create(object, ...rest)
        created.push({ kind: object.kind, name: object.name })
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? error.code : undefined
        // A create whose answer was lost may have happened; its name is of this run alone.
        if (code !== 'ALREADY_EXISTS' && code !== 'INVALID_NAME') created.push({ kind: object.kind, name: object.name })
        throw error
      }
    },
    update: (...given) => port.update(...given),
    addMember: (...given) => port.addMember(...given),
    removeMember: (...given) => port.removeMember(...given),
    delete: (...given) => port.delete(...given),
    close: () => port.close(),
  }
}

/** Objects of the broker whose names begin so. */
export async function objectsNamed(given: GivenBroker, prefix: string): Promise<readonly ObjectRef[]> {
  const port = createSolaceBroker(given.settings, given.password, {})
  try {
    await port.facts()
    const found: ObjectRef[] = []
    for (const kind of OBJECT_KINDS) {
      for await (const page of port.list(kind)) {
        found.push(...page.filter(({ name }) => name.startsWith(prefix)).map(({ name }) => ({ kind, name })))
      }
    }
    return found
  } finally {
    await port.close()
  }
}
