const HIDDEN = '[secret]'

/**
 * A secret value that cannot be printed, logged, serialised or compared by accident.
 * Only `reveal()` gives the text; its callers are the sealing code, the broker adapters and the login probes.
 */
export class Secret {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  reveal(): string {
    return this.#text
  }

  toString(): string {
    return HIDDEN
  }

  toJSON(): string {
    return HIDDEN
  }

  [Symbol.toPrimitive](): string {
    return HIDDEN
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return HIDDEN
  }
}
