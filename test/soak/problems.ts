const MOST = 20

/** What is wrong, each thing once. */
export class Problems {
  readonly #texts = new Map<string, string>()

  get all(): readonly string[] {
    return [...this.#texts.values()]
  }

  /** Nothing more is learned by going on. */
  get areMany(): boolean {
    return this.#texts.size >= MOST
  }

  /** `key` tells whether it is known already; the text may be another each time. */
  add(text: string, key = text): void {
    if (!this.#texts.has(key) && !this.areMany) this.#texts.set(key, text)
  }
}
