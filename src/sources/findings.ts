import type { UnreadObject } from '../domain/remote-catalogue.ts'

/** More of them tell a person nothing. */
const MAX_WARNINGS = 200

/** What a pass meets that it cannot use: told to a person, and kept from looking as if it were gone. */
export class Findings {
  readonly #warnings = new Set<string>()
  readonly #unread: UnreadObject[] = []
  #untold = 0

  warn(warning: string): void {
    if (this.#warnings.has(warning)) return
    if (this.#warnings.size < MAX_WARNINGS) this.#warnings.add(warning)
    else this.#untold += 1
  }

  /** What is stored of the object stays as it is. */
  leave(object: UnreadObject, warning: string): void {
    this.#unread.push(object)
    this.warn(warning)
  }

  get unread(): readonly UnreadObject[] {
    return this.#unread
  }

  get warnings(): readonly string[] {
    const told = [...this.#warnings]
    return this.#untold === 0 ? told : [...told, `… and ${this.#untold} more warnings`]
  }
}
