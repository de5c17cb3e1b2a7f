/** To three digits behind the point: more would claim what no run repeats. */
export const round = (value: number): number => Math.round(value * 1000) / 1000

/** The value at this share of the sorted values; NaN without any. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}

/** The upper one of the middle two. */
export const median = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
