import { z } from 'zod'
import type { AttributeValue, BrokerObject, ObjectKind } from '../../domain/broker-object.ts'
import { type AttributeType, KIND_MAPPINGS, MEMBER_COLLECTIONS, type MemberCollection } from './solace-mapping.ts'

export const ABOUT = z.object({ sempVersion: z.string().regex(/^\d+\.\d+/) })

export const MSG_VPN = z.object({
  enabled: z.boolean(),
  authenticationBasicEnabled: z.boolean(),
  authenticationBasicType: z.string(),
})

/** Monitor API: `msgs.count` is part of the answer's `collections`, the spool usage in bytes is an attribute. */
export const QUEUE_MONITOR = z.object({
  collections: z.object({ msgs: z.object({ count: z.int().nonnegative() }) }),
  data: z.object({ msgSpoolUsage: z.number().optional() }),
})

type Row = Readonly<Record<string, AttributeValue>>

/** What is selected of an object kind, and the schema of one and of a page. Every selected attribute must be there. */
export interface ObjectAnswer {
  readonly select: readonly string[]
  readonly one: z.ZodType<Row>
  readonly page: z.ZodType<readonly Row[]>
}

const ATTRIBUTE_SCHEMAS: Readonly<Record<AttributeType, z.ZodType<AttributeValue>>> = {
  string: z.string(),
  boolean: z.boolean(),
  integer: z.int(),
}

function objectAnswer(kind: ObjectKind): ObjectAnswer {
  const { nameAttribute, attributes } = KIND_MAPPINGS[kind]
  const types: Readonly<Record<string, AttributeType>> = { [nameAttribute]: 'string', ...attributes }
  const one = z.object(
    Object.fromEntries(Object.entries(types).map(([name, type]) => [name, ATTRIBUTE_SCHEMAS[type]] as const)),
  )
  return { select: Object.keys(types), one, page: z.array(one) }
}

export const OBJECT_ANSWERS: Readonly<Record<ObjectKind, ObjectAnswer>> = {
  clientProfile: objectAnswer('clientProfile'),
  aclProfile: objectAnswer('aclProfile'),
  clientUsername: objectAnswer('clientUsername'),
  queue: objectAnswer('queue'),
}

export function toObject(kind: ObjectKind, row: Row): BrokerObject {
  const { [KIND_MAPPINGS[kind].nameAttribute]: name, ...attributes } = row
  return { kind, name: String(name), attributes, members: {} }
}

export interface MemberAnswer {
  readonly collection: MemberCollection
  readonly select: readonly string[]
  readonly page: z.ZodType<readonly { readonly member: string; readonly syntax: 'smf' | 'mqtt' }[]>
}

function memberAnswer(collection: MemberCollection): MemberAnswer {
  const { memberAttribute, syntaxAttribute } = collection
  if (syntaxAttribute === undefined) {
    const one = z.object({ [memberAttribute]: z.string() })
    const page = z.array(one.transform((row) => ({ member: String(row[memberAttribute]), syntax: 'smf' as const })))
    return { collection, select: [memberAttribute], page }
  }
  const one = z.object({ [memberAttribute]: z.string(), [syntaxAttribute]: z.enum(['smf', 'mqtt']) })
  const page = z.array(
    one.transform((row) => ({
      member: String(row[memberAttribute]),
      syntax: row[syntaxAttribute] === 'mqtt' ? ('mqtt' as const) : ('smf' as const),
    })),
  )
  return { collection, select: [memberAttribute, syntaxAttribute], page }
}

/** One listing each. */
export const MEMBER_ANSWERS: Readonly<Record<ObjectKind, readonly MemberAnswer[]>> = {
  clientProfile: MEMBER_COLLECTIONS.clientProfile.map(memberAnswer),
  aclProfile: MEMBER_COLLECTIONS.aclProfile.map(memberAnswer),
  clientUsername: MEMBER_COLLECTIONS.clientUsername.map(memberAnswer),
  queue: MEMBER_COLLECTIONS.queue.map(memberAnswer),
}
