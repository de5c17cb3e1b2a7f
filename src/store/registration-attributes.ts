import { notFound } from '../domain/refusals.ts'
import type { Database } from './database.ts'
import {
  changeRegistration,
  findRegistration,
  type RegistrationPlace,
  refused,
  writeRegistration,
} from './registrations-change.ts'
import type { NameValue } from './schema.ts'

// What integrations keep with a registration. No broker knows it, so no generation is raised.

export const MAX_ATTRIBUTES = 256

/** Called with what is stored, the registration locked; throws to refuse the change. */
type Check = (stored: NameValue) => void

/** Throws NOT_FOUND. */
export async function findAttribute(db: Database, place: RegistrationPlace, name: string): Promise<NameValue> {
  const { attributes } = await findRegistration(db, place)
  return storedAttribute(attributes, name)
}

/** Throws NOT_FOUND, InvalidInputError when there is one of that name, or there are too many. */
export function createAttribute(db: Database, place: RegistrationPlace, attribute: NameValue): Promise<NameValue> {
  return changeAttributes(db, place, (attributes) => {
    if (attributes.some(({ name }) => name === attribute.name)) {
      throw refused('name', 'is not unique: the registration has an attribute of this name')
    }
    if (attributes.length >= MAX_ATTRIBUTES) {
      throw refused('request', `the registration has ${MAX_ATTRIBUTES} attributes, which is the most it can have`)
    }
    return { attributes: [...attributes, attribute], result: attribute }
  })
}

/** Without a value nothing changes. Throws NOT_FOUND, or what `check` throws. */
export function updateAttribute(
  db: Database,
  place: RegistrationPlace,
  { name, value }: { readonly name: string; readonly value: string | undefined },
  check: Check,
): Promise<NameValue> {
  return changeAttributes(db, place, (attributes) => {
    const stored = storedAttribute(attributes, name)
    check(stored)
    const result = { name, value: value ?? stored.value }
    return { attributes: attributes.map((each) => (each === stored ? result : each)), result }
  })
}

/** Throws NOT_FOUND, or what `check` throws. */
export async function deleteAttribute(
  db: Database,
  place: RegistrationPlace,
  name: string,
  check: Check,
): Promise<void> {
  await changeAttributes(db, place, (attributes) => {
    const stored = storedAttribute(attributes, name)
    check(stored)
    return { attributes: attributes.filter((each) => each !== stored), result: undefined }
  })
}

function storedAttribute(attributes: readonly NameValue[], name: string): NameValue {
  const stored = attributes.find((each) => each.name === name)
  if (stored === undefined) throw notFound('attribute', name)
  return stored
}

async function changeAttributes<Result>(
  db: Database,
  place: RegistrationPlace,
  change: (attributes: readonly NameValue[]) => { readonly attributes: readonly NameValue[]; readonly result: Result },
): Promise<Result> {
  const { result } = await changeRegistration(db, place, async (trx, registration) => {
    const changed = change(registration.attributes)
    await writeRegistration(trx, place, { ...registration, attributes: changed.attributes })
    return { result: changed.result, touched: false }
  })
  return result
}
