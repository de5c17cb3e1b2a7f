import { z } from 'zod'
import { externalIdProblem, nameProblem } from '../../../domain/names.ts'

/** Text of a published shape that a problem function of the domain judges too; one problem at a time is said. */
export const judged = (shape: z.ZodString, problemOf: (text: string) => string | null) =>
  shape.superRefine((text, context) => {
    const problem = shape.safeParse(text).success ? problemOf(text) : null
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })

const EXTERNAL_ID = /^[a-zA-Z0-9_-]*(@[ |\S]*)?$/

/** The client chooses it. */
export const externalId = judged(
  z
    .string()
    .min(2)
    .max(64)
    .regex(EXTERNAL_ID, 'may contain letters, digits, `_` and `-`, then optionally `@` and more text'),
  externalIdProblem,
)

/** In a path: whatever a body may give, and more of it, which is then not found. */
export const pathExternalId = z
  .string()
  .min(2)
  .max(188)
  .regex(EXTERNAL_ID, 'may contain letters, digits, `_` and `-`, then optionally `@` and more text')

/** A name for people: one line. */
export const name = judged(z.string().min(1).max(128).regex(/^.*$/, 'must be one line'), nameProblem)

export const ofRegistration = z.strictObject({ registrationId: pathExternalId })
