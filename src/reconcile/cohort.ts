/**
 * A meeting point for runs that go side by side: whoever arrives waits until all others have arrived or left. What they
 * then ask of the store in the same moment goes out as one statement.
 */
export class Cohort {
  #members: number
  #waiting: (() => void)[] = []

  constructor(members: number) {
    this.#members = members
  }

  arrive(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#openWhenComplete()
    })
  }

  leave(): void {
    this.#members -= 1
    this.#openWhenComplete()
  }

  #openWhenComplete(): void {
    if (this.#waiting.length < this.#members) return
    const released = this.#waiting
    this.#waiting = []
    for (const resolve of released) resolve()
  }
}
