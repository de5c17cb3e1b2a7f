import type { Filters } from '../domain/registration.ts'

/** Of the parameter `name`: its channels are narrowed to these values. */
export interface FilterView {
  readonly name: string
  readonly values: readonly string[]
}

/** By name. */
export const filterViews = (filters: Filters): readonly FilterView[] =>
  Object.entries(filters)
    .map(([name, values]) => ({ name, values }))
    .sort((one, other) => (one.name < other.name ? -1 : 1))
