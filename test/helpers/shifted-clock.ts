/** Sets the clock of this process, of everything in it: libraries and the service alike. The time that passes is not touched. */
export class ShiftedClock implements Disposable {
  readonly #real = globalThis.Date
  #byMs = 0

  constructor() {
    const real = this.#real
    const now = (): number => real.now() + this.#byMs
    globalThis.Date = new Proxy(real, {
      construct: (target, args: unknown[], newTarget) =>
        Reflect.construct(
          target,
          args.length === 0 ? [now()] : args,
          newTarget === globalThis.Date ? target : newTarget,
        ),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    })
  }

  /** Ahead of the real clock by so much from now on; negative for behind. */
  setAhead(byMs: number): void {
    this.#byMs = byMs
  }

  [Symbol.dispose](): void {
    globalThis.Date = this.#real
  }
}
