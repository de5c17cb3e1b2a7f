/**
 * An answer that is made anew no more often than it is worth: it counts as fresh for twenty times as long as it took to make,
 * so that readers cost one connection a twentieth of its time, however many they are.
 */
export interface Remembered<Value> {
  /** Null when the first answer takes longer than a page may wait; the next reader has it. Old answers come while one is made. */
  read(key: string): Promise<Value | null>
  /** Resolves when nothing is being made. */
  idle(): Promise<void>
}

export interface RememberedOptions<Value> {
  readonly make: (key: string) => Promise<Value>
  readonly now?: () => number
  /** How long a reader waits for an answer that is being made. */
  readonly waitMs?: number
  /** An answer that is older than this is not shown any more. */
  readonly oldestMs?: number
  readonly onError: (error: unknown) => void
}

interface Entry<Value> {
  value: Value | null
  madeAtMs: number
  tookMs: number
  making: Promise<void> | null
}

const TIMES_AS_LONG_AS_IT_TOOK = 20
const MAX_KEYS = 100

export function remembered<Value>(options: RememberedOptions<Value>): Remembered<Value> {
  const { make, now = () => performance.now(), waitMs = 40, oldestMs = 120_000, onError } = options
  const entries = new Map<string, Entry<Value>>()

  const refresh = (key: string, entry: Entry<Value>): Promise<void> => {
    entry.making ??= (async () => {
      const startedAtMs = now()
      try {
        entry.value = await make(key)
        entry.madeAtMs = now()
        entry.tookMs = entry.madeAtMs - startedAtMs
      } catch (error) {
        onError(error)
      } finally {
        entry.making = null
      }
    })()
    return entry.making
  }

  return {
    read: async (key) => {
      const entry = entries.get(key) ?? { value: null, madeAtMs: 0, tookMs: 0, making: null }
      entries.delete(key)
      entries.set(key, entry)
      for (const oldest of entries.keys()) if (entries.size > MAX_KEYS) entries.delete(oldest)
      const isFresh = entry.value !== null && now() - entry.madeAtMs < entry.tookMs * TIMES_AS_LONG_AS_IT_TOOK
      if (!isFresh) await settledWithin(refresh(key, entry), waitMs)
      return entry.value !== null && now() - entry.madeAtMs < oldestMs ? entry.value : null
    },
    idle: async () => {
      await Promise.all([...entries.values()].map(({ making }) => making))
    },
  }
}

async function settledWithin(promise: Promise<void>, waitMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, waitMs)
  })
  await Promise.race([promise, late])
  clearTimeout(timer)
}
