export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const SAMPLE = /^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$/i
const LABEL = /([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"/gi

/** Samples of the text format of Prometheus. Throws at a line that is none. */
export function parseMetrics(text: string): readonly Sample[] {
  return text.split('\n').flatMap((line): Sample[] => {
    if (line === '' || line.startsWith('#')) return []
    const [, name, labels = '', value] = SAMPLE.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`not a sample: ${line}`)
    const pairs = [...labels.matchAll(LABEL)].map(([, key = '', text = '']) => [key, text] as const)
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
  })
}

/** The sum of all samples of a name that have these labels; null when there is none. */
export function sumOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0)
}
