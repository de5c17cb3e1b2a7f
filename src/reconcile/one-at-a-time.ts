/** Work of one name follows each other; work of different names does not wait. */
export class OneAtATime {
  readonly #last = new Map<string, Promise<unknown>>()

  run<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#last.get(name) ?? Promise.resolve()).then(work)
    const ended = result
      .catch(() => undefined)
      .finally(() => {
        if (this.#last.get(name) === ended) this.#last.delete(name)
      })
    this.#last.set(name, ended)
    return result
  }
}
