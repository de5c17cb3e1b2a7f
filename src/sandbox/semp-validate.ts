import { Secret } from '../domain/secret.ts'
import type { Attribute, Scope, TextAttribute, ThresholdAttribute, Values } from './attribute.ts'
import type { ObjectTable } from './object-tables.ts'
import { SempFailure } from './semp-errors.ts'

export type WriteMethod = 'POST' | 'PUT' | 'PATCH'

export interface WriteRequest {
  readonly table: ObjectTable
  readonly method: WriteMethod
  readonly body: Readonly<Record<string, unknown>>
  /** Identifying values from the path; a POST has only those of the parents. */
  readonly identity: Readonly<Record<string, string>>
  readonly mayChange: (scope: Scope) => boolean
}

export interface WriteValues {
  readonly values: Values
  readonly secrets: Record<string, Secret>
}

export class BodyReader {
  readonly #request: WriteRequest

  constructor(request: WriteRequest) {
    this.#request = request
  }

  /** Checks every attribute of the body. The values hold no identity that the path gives. Throws `SempFailure`. */
  read(): WriteValues {
    const { table, method, body, mayChange } = this.#request
    const result: WriteValues = { values: {}, secrets: {} }
    for (const name of Object.keys(body)) {
      const attribute = Object.hasOwn(table.attributes, name) ? table.attributes[name] : undefined
      if (attribute === undefined) throw this.#invalid(`"${name}" is not an attribute of the ${table.label}.`)
      this.#check(name, attribute, body[name])
      this.#checkRequires(name, attribute)
      if (attribute.type === 'string' && attribute.identity !== undefined) {
        this.#readIdentity(name, attribute, String(body[name]), result)
        continue
      }
      if (!mayChange(attribute.patchScope ?? table.patchScope)) {
        // A PUT leaves alone what its user may not modify, as long as the request does not name it.
        throw new SempFailure(
          'UNAUTHORIZED',
          `Problem with ${method}: Command prohibited due to Authorization Access Level`,
        )
      }
      if (attribute.writeOnly === true) result.secrets[name] = new Secret(String(body[name]))
      else result.values[name] = body[name] as Values[string]
    }
    if (method === 'POST') this.#checkRequired()
    return result
  }

  #invalid(description: string): SempFailure {
    return new SempFailure('INVALID_PARAMETER', `Problem with ${this.#request.method}: ${description}`)
  }

  #readIdentity(name: string, attribute: TextAttribute, value: string, result: WriteValues): void {
    const fromPath = this.#request.identity[name]
    if (fromPath !== undefined && fromPath !== value) {
      throw this.#invalid(`"${name}" is not the value in the path, and it cannot be changed.`)
    }
    if (attribute.identity === 'own' && fromPath === undefined) result.values[name] = value
  }

  #checkRequired(): void {
    const { table, body } = this.#request
    const missing = table.keys.filter((name) => !Object.hasOwn(body, name))
    if (missing.length > 0) {
      throw new SempFailure('MISSING_PARAMETER', `Problem with POST: Missing required attribute ${missing.join(', ')}.`)
    }
  }

  #checkRequires(name: string, attribute: Attribute): void {
    const missing = attribute.requires?.filter((other) => !Object.hasOwn(this.#request.body, other)) ?? []
    if (missing.length > 0) {
      throw new SempFailure(
        'MISSING_PARAMETER',
        `Problem with ${this.#request.method}: "${name}" can only be given together with ${missing.join(', ')}.`,
      )
    }
  }

  #check(name: string, attribute: Attribute, value: unknown): void {
    switch (attribute.type) {
      case 'string':
        this.#checkText(name, attribute, value)
        return
      case 'boolean':
        if (typeof value !== 'boolean') throw this.#invalid(`"${name}" value must be a boolean.`)
        return
      case 'integer':
        this.#checkInteger(name, value, attribute.minimum, attribute.maximum)
        return
      case 'threshold':
        this.#checkThreshold(name, attribute, value)
        return
      default:
        attribute satisfies never
    }
  }

  #checkText(name: string, attribute: TextAttribute, value: unknown): void {
    if (typeof value !== 'string') throw this.#invalid(`"${name}" value must be a string.`)
    if (attribute.values !== undefined) {
      if (attribute.values.includes(value)) return
      throw this.#invalid(`"${name}" value must be one of ${attribute.values.join(', ')}.`)
    }
    const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = attribute
    // Characters outside the basic plane count once; only a text that looks too long is worth counting.
    const length = value.length > maxLength ? [...value].length : value.length
    if (length > maxLength) {
      throw this.#invalid(`"${name}" value must be no greater than ${maxLength} characters in length.`)
    }
    if (length < minLength) {
      throw this.#invalid(`"${name}" value must be no less than ${minLength} characters in length.`)
    }
    if (attribute.pattern?.test(value) === false) throw this.#invalid(`"${name}" value does not match its pattern.`)
  }

  #checkInteger(name: string, value: unknown, minimum: number, maximum: number): void {
    if (typeof value !== 'number' || !Number.isInteger(value))
      throw this.#invalid(`"${name}" value must be an integer.`)
    if (value < minimum || value > maximum) {
      throw this.#invalid(`"${name}" value must be in the range from ${minimum} to ${maximum}.`)
    }
  }

  /** Clear and set come together, as percentages or as values, not both. */
  #checkThreshold(name: string, attribute: ThresholdAttribute, value: unknown): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw this.#invalid(`"${name}" value must be an object.`)
    }
    const given = value as Readonly<Record<string, unknown>>
    const names = Object.keys(given)
    const pairs = [
      ...(attribute.percent ? [{ names: ['clearPercent', 'setPercent'], maximum: 100 }] : []),
      ...(attribute.value ? [{ names: ['clearValue', 'setValue'], maximum: attribute.value.maximum }] : []),
    ]
    const unknown = names.find((part) => !pairs.some((pair) => pair.names.includes(part)))
    if (unknown !== undefined) throw this.#invalid(`"${name}.${unknown}" is not an attribute.`)
    const used = pairs.filter((pair) => pair.names.some((part) => names.includes(part)))
    if (used.length > 1) throw this.#invalid(`"${name}" takes percentages or values, not both.`)
    const [pair] = used
    if (pair === undefined || pair.names.some((part) => !names.includes(part))) {
      throw new SempFailure(
        'MISSING_PARAMETER',
        `Problem with ${this.#request.method}: "${name}" needs its clear and its set threshold together.`,
      )
    }
    for (const part of pair.names) this.#checkInteger(`${name}.${part}`, given[part], 0, pair.maximum)
  }
}
