import { z } from 'zod'

/** 4 to 128 letters, digits, `_`, `-` and `.`. */
export const attributeName = z
  .string()
  .min(4)
  .max(128)
  .regex(/^[a-zA-Z0-9_.-]*$/, 'may contain letters, digits, `_`, `-` and `.` only')

/** In a body; a stored value may have line breaks too. */
export const attributeValue = z.string().max(10_000).regex(/^.*$/, 'must be one line')

/** A name and a value, as stored. */
export const attribute = z
  .strictObject({ name: attributeName, value: z.string().max(10_000) })
  .meta({ id: 'Attribute', description: 'A name and a value; names are unique within one object.' })

/** The body that creates one. */
export const attributeCreation = z.strictObject({ name: attributeName, value: attributeValue })

/** The body that changes one; without a value nothing changes. */
export const attributeUpdate = z
  .strictObject({ value: attributeValue.optional() })
  .meta({ id: 'AttributeUpdateRequest' })

/** The fields by which a list of attributes can be sorted. */
export const ATTRIBUTE_SORT_FIELDS = ['name', 'value'] as const
