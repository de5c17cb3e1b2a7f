import { z } from 'zod'

/** An id in a path of the APIM API. Shorter than in its description, as the portal may give ids of two characters. */
export const pathId = z
  .string()
  .min(1)
  .max(188)
  .regex(/^[a-zA-Z0-9_-]*$/, 'may contain letters, digits, `_` and `-` only')

/** The RSQL filter of a list. */
export const where = z
  .string()
  .min(5)
  .max(1024)
  .optional()
  .describe(
    'RSQL: `name==Order*;state==RELEASED`. `;` is and, `,` is or, `*` any text, `.` a part of a part. In parentheses, ' +
      'conditions on one array speak of one element: `(attributes.name==color;attributes.value==Bl*)`.',
  )

/** The query of a call that has no parameters. */
export const noQuery = z.strictObject({})
