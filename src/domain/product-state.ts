import type { ProductState } from './catalogue.ts'

/** Forward, one step at a time: what was published is never unpublished silently. */
const NEXT: Readonly<Record<ProductState, ProductState | null>> = {
  DRAFT: 'RELEASED',
  RELEASED: 'DEPRECATED',
  DEPRECATED: 'RETIRED',
  RETIRED: null,
  DELETED: null,
}

/** Why a product version may not go from one state to another; null when it may. */
export function transitionProblem(from: ProductState, to: ProductState): string | null {
  if (from === to || NEXT[from] === to) return null
  const next = NEXT[from]
  return next === null
    ? `A version in state ${from} stays in it.`
    : `A version in state ${from} may only become ${next}, not ${to}.`
}
