import type { Sample } from './probe.ts'
import type { Growth } from './settings.ts'

export interface TimedSample extends Sample {
  readonly atMs: number
}

/** What a service holds more of at the end than after the first third of its life, and more than is good. */
export function growthProblems(samples: readonly TimedSample[], lengthMs: number, growth: Growth): readonly string[] {
  const third = (from: number) =>
    samples.filter(({ atMs }) => atMs >= (from * lengthMs) / 3 && atMs < ((from + 1) * lengthMs) / 3)
  const [middle, last] = [third(1), third(2)]
  if (middle.length === 0 || last.length === 0) return ['there are no samples of the middle and of the end']
  const memory = (['heapMb', 'rssMb'] as const).flatMap((figure) => {
    const [before, after] = [middle, last].map((each) => median(each.map((sample) => sample[figure])))
    const limit = Math.max((before ?? 0) * growth.factor, (before ?? 0) + growth[figure])
    return (after ?? 0) <= limit ? [] : [`${figure} grew from ${before} to ${after}`]
  })
  const counts = (each: readonly TimedSample[]) => Math.max(...each.map(({ resources }) => total(resources)))
  const limit = counts(middle) * growth.factor + MORE_RESOURCES
  const kept = counts(last) <= limit ? [] : [`open resources grew from ${counts(middle)} to ${counts(last)}`]
  return [...memory, ...kept]
}

/** Connections come and go. */
const MORE_RESOURCES = 30

/** A quiet service after its life against the quiet one before. */
export function leftProblems(before: Sample, after: Sample, allowedMore: number): readonly string[] {
  const [one, other] = [total(before.resources), total(after.resources)]
  if (other <= one + allowedMore) return []
  return [`${other} open resources are left of ${one}: ${JSON.stringify([before.resources, after.resources])}`]
}

const total = (resources: Readonly<Record<string, number>>): number =>
  Object.values(resources).reduce((sum, count) => sum + count, 0)

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
