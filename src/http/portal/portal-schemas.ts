import { z } from 'zod'
import { catalogueIdProblem, nameProblem } from '../../domain/names.ts'
import type { CustomAttribute } from '../../domain/portal-file.ts'
import { longText, text } from '../../portal-file/portal-file-schema.ts'

/** Looked up, not made: what no id looks like is simply not there. */
export const idParameter = z.string().min(1).max(256)
export const newId = text(catalogueIdProblem).meta({ description: '2 to 64 letters and digits; made when left out.' })
export const reference = idParameter
export const name = text(nameProblem)
export const description = longText(10_000)
export const GENERATED_ID_LENGTH = 11

const MAX_ATTRIBUTES = 256

export const attributes = z
  .array(
    z.strictObject({
      name: z.string().regex(/^[a-zA-Z0-9_.-]{4,128}$/, 'must be 4 to 128 letters, digits, `_`, `-` and `.`'),
      value: longText(10_000),
    }),
  )
  .max(MAX_ATTRIBUTES)
  .superRefine((list, context) => {
    for (const [index, each] of list.entries()) {
      if (list.findIndex((other) => other.name === each.name) === index) continue
      context.addIssue({ code: 'custom', path: [index, 'name'], message: 'is in the list already' })
    }
  })

export const shownAttributes = (list: readonly CustomAttribute[]) => list.map(({ name, value }) => ({ name, value }))
