/** Runs `task` on each item, at most `limit` at a time, as the items come. A task that throws stops the rest. */
export async function concurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const failure: { error: unknown }[] = []
  try {
    for await (const item of items) {
      if (failure.length > 0) break
      const promise: Promise<void> = task(item)
        .catch((error: unknown) => {
          failure.push({ error })
        })
        .finally(() => running.delete(promise))
      running.add(promise)
      if (running.size >= limit) await Promise.race(running)
    }
  } finally {
    // Nothing runs on after the caller was told, be it that the items themselves failed.
    await Promise.all(running)
  }
  const [first] = failure
  if (first !== undefined) throw first.error
}

/** The results of `task` in the order of the items, with at most `limit` at work. A task that throws stops the rest. */
export async function* inOrder<Item, Result>(
  items: AsyncIterable<Item>,
  limit: number,
  task: (item: Item) => Promise<Result>,
): AsyncIterable<Result> {
  const running: Promise<Result>[] = []
  try {
    for await (const item of items) {
      const promise = task(item)
      // Whoever takes its turn hears of the failure.
      promise.catch(() => undefined)
      running.push(promise)
      const first = running.length >= limit ? running.shift() : undefined
      if (first !== undefined) yield await first
    }
    for (let first = running.shift(); first !== undefined; first = running.shift()) yield await first
  } finally {
    await Promise.allSettled(running)
  }
}

/** Waits for all of them, then throws the first failure: nothing runs on behind the caller's back. */
export async function allDone<Result>(tasks: readonly (Result | Promise<Result>)[]): Promise<readonly Result[]> {
  const results: Result[] = []
  const ends = await Promise.allSettled(tasks)
  for (const end of ends) {
    if (end.status === 'rejected') throw end.reason
    results.push(end.value)
  }
  return results
}
