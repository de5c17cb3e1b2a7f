import { z } from 'zod'
import { hasUnsafeCharacters } from '../domain/names.ts'
import { filterValueProblem } from '../domain/topic-pattern.ts'

// Fields of the APIM API as another service may send them: what is not known is left out, null counts as absent.

/** Goes into a path and into names of the store. */
export const catalogueId = z.string().regex(/^[A-Za-z0-9_-]{1,188}$/)
/** Chosen by a client of the other service. */
export const externalId = z
  .string()
  .min(1)
  .max(188)
  .refine((text) => !hasUnsafeCharacters(text))

export const text = (maxLength = 10_000) =>
  z
    .string()
    .max(maxLength)
    .nullish()
    .transform((value) => value ?? '')

export const list = z.array(z.unknown()).nullish()

const attribute = z.object({ name: z.string().min(1).max(256), value: z.string().max(10_000) })

/** Those that are one; no broker knows them. */
export const attributes = list.transform((items) => {
  const byName = new Map<string, z.output<typeof attribute>>()
  for (const item of items ?? []) {
    const parsed = attribute.safeParse(item)
    if (parsed.success) byName.set(parsed.data.name, parsed.data)
  }
  return [...byName.values()]
})

const filter = z.object({
  name: z.string().min(1).max(256),
  values: z
    .array(z.string().refine((value) => filterValueProblem(value) === null))
    .min(1)
    .max(1024),
})

/** All or nothing: without one of them a client would get more topics than it was granted. */
export const filters = z
  .array(filter)
  .nullish()
  .transform((items) => Object.fromEntries((items ?? []).map(({ name, values }) => [name, values])))

/** Epoch milliseconds; -1, 0 and null stand for never. */
export const expiry = z
  .number()
  .max(8_640_000_000_000_000)
  .nullish()
  .transform((value) => (value == null || value <= 0 ? null : Math.round(value)))

/** `Pending Approval` and `PENDING_APPROVAL` are the same. */
export const state = z.string().transform((value) =>
  value
    .trim()
    .toUpperCase()
    .replaceAll(/[\s-]+/g, '_'),
)
