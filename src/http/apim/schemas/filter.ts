import { z } from 'zod'
import { filterValueProblem } from '../../../domain/topic-pattern.ts'
import { judged, name } from './registration-id.ts'

const value = judged(
  z
    .string()
    .min(1)
    .max(128)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as the API's description has it
    .regex(/^[^>/\u0000*!]*[*]?$/, 'must not contain `>`, `/` or `!`, and `*` only at its end'),
  filterValueProblem,
)

const values = z.array(value).min(1).max(128).describe('What the parameter is narrowed to; `*` stands for any text.')

export const filter = z
  .strictObject({ name: z.string(), values: z.array(z.string()) })
  .meta({ id: 'APIParameterFilter', description: 'Values of a parameter of the topics.' })

export const filterCreation = z.strictObject({ name: name.describe('Of the parameter.'), values })

/** Without values nothing changes. */
export const filterUpdate = z.strictObject({ values: values.optional() }).meta({ id: 'FilterUpdateRequest' })

/** A parameter may have any name. */
export const filterName = z.string().min(1).max(188)
