/** Gives back what was opened, last first; the first failure is thrown after all were tried. */
export class Disposer {
  readonly #disposals: (() => PromiseLike<unknown>)[] = []

  defer(dispose: () => PromiseLike<unknown>): void {
    this.#disposals.push(dispose)
  }

  async dispose(): Promise<void> {
    const failures: unknown[] = []
    for (const dispose of this.#disposals.splice(0).reverse()) {
      try {
        await dispose()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
