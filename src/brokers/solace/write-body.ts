import type { AttributeValue, ObjectRef } from '../../domain/broker-object.ts'
import { KeymeshError } from '../../domain/errors.ts'
import type { Secret } from '../../domain/secret.ts'
import { checkAttributes, describeObject, OBJECT_WORDS } from './solace-mapping.ts'

type Attributes = Readonly<Record<string, AttributeValue>>

const MAX_PASSWORD_LENGTH = 128

/** The JSON of a write, and the texts in it that must not come back in a message. */
export function objectBody(
  ref: ObjectRef,
  attributes: Attributes,
  body: Attributes,
  password: Secret | null,
): { readonly body: string; readonly secrets: readonly string[] } {
  checkAttributes(ref, attributes)
  if (password === null) return { body: JSON.stringify(body), secrets: [] }
  const text = password.reveal()
  if (ref.kind !== 'clientUsername' || text.length > MAX_PASSWORD_LENGTH) {
    throw new KeymeshError({
      code: 'INVALID_PASSWORD',
      fate: 'stop',
      message:
        ref.kind === 'clientUsername'
          ? `The password of ${describeObject(ref)} is longer than ${MAX_PASSWORD_LENGTH} characters.`
          : `A ${OBJECT_WORDS[ref.kind]} has no password.`,
    })
  }
  return { body: JSON.stringify({ ...body, password: text }), secrets: [text] }
}
