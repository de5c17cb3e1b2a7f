/** How work tells what happens. */
export interface Emitter<Event> {
  /** Resolves when the reader has room for more. */
  emit(event: Event): Promise<void>
  /** Dropped when the reader is behind: for progress, of which the latest counts. */
  mention(event: Event): void
}

/** A reader that is slow makes the work wait instead of filling the memory. */
const MAX_UNREAD = 64

/** What the work emits, as it comes. A reader that leaves aborts the work, and is let go when the work has ended. */
export async function* emittedEvents<Event>(
  signal: AbortSignal,
  work: (emitter: Emitter<Event>, signal: AbortSignal) => Promise<void>,
): AsyncGenerator<Event, void, undefined> {
  const left = new AbortController()
  const unread: Event[] = []
  let wakeReader = (): void => undefined
  let held: (() => void)[] = []
  const letGo = (): void => {
    for (const release of held) release()
    held = []
  }
  const emitter: Emitter<Event> = {
    emit: async (event) => {
      unread.push(event)
      wakeReader()
      if (unread.length < MAX_UNREAD || left.signal.aborted) return
      await new Promise<void>((resolve) => held.push(resolve))
    },
    mention: (event) => {
      if (unread.length > 0) return
      unread.push(event)
      wakeReader()
    },
  }
  const end: { ended: boolean; failure?: { readonly error: unknown } } = { ended: false }
  const running = work(emitter, AbortSignal.any([signal, left.signal]))
    .catch((error: unknown) => {
      end.failure = { error }
    })
    .finally(() => {
      end.ended = true
      wakeReader()
    })
  try {
    for (;;) {
      const event = unread.shift()
      if (event !== undefined) {
        letGo()
        yield event
      } else if (end.ended) break
      else
        await new Promise<void>((resolve) => {
          wakeReader = resolve
        })
    }
    if (end.failure !== undefined) throw end.failure.error
  } finally {
    left.abort(new Error('the reader left'))
    letGo()
    await running
  }
}
