const MOST = 20

/** What is wrong, each thing once. */
export class Problems {
  readonly #texts = new Map<string, string>()
  readonly #say: (line: string) => void

  /** `say` is told of each at once: an hour is long. */
  constructor(say: (line: string) => void = () => undefined) {
    this.#say = say
  }

  get all(): readonly string[] {
    return [...this.#texts.values()]
  }

  /** Nothing more is learned by going on. */
  get areMany(): boolean {
    return this.#texts.size >= MOST
  }

  /** `key` tells whether it is known already; the text may be another each time. */
  add(text: string, key = text): void {
    if (this.#texts.has(key) || this.areMany) return
    this.#texts.set(key, text)
    this.#say(`problem: ${text}`)
  }
}
