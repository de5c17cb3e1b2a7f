interface Waiting<Input, Output> {
  readonly input: Input
  readonly resolve: (output: Output) => void
  readonly reject: (error: unknown) => void
}

/**
 * Group commit for any call: what is asked while a batch is under way goes out together as the next one. Idle calls
 * wait for nothing. When a batch of several fails, each is tried alone, so that one bad item fails alone.
 */
export function batched<Input, Output>(
  run: (inputs: readonly Input[]) => Promise<readonly Output[]>,
  maxBatch = 200,
): (input: Input) => Promise<Output> {
  let waiting: Waiting<Input, Output>[] = []
  let running = false

  const drain = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxBatch)
      waiting = waiting.slice(maxBatch)
      await runBatch(run, batch)
    }
    running = false
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject })
      if (running) return
      running = true
      setImmediate(() => void drain())
    })
}

async function runBatch<Input, Output>(
  run: (inputs: readonly Input[]) => Promise<readonly Output[]>,
  batch: readonly Waiting<Input, Output>[],
): Promise<void> {
  try {
    const outputs = await run(batch.map(({ input }) => input))
    batch.forEach(({ resolve, reject }, index) => {
      if (index < outputs.length) resolve(outputs[index] as Output)
      else reject(new TypeError('the batch returned too few results'))
    })
  } catch (error) {
    const [only, ...others] = batch
    if (only === undefined) return
    if (others.length === 0) {
      only.reject(error)
      return
    }
    for (const each of batch) await runBatch(run, [each])
  }
}
