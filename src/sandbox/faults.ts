import type { Random } from './seeded-random.ts'

export const FAULT_KINDS = ['http-401', 'http-503', 'http-529', 'reset', 'timeout', 'half-body', 'junk-json'] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

export interface FaultMatch {
  /** GET, POST, … */
  readonly method?: string
  /** A part of the request's path and query, or an expression for it. */
  readonly path?: string | RegExp
}

export interface FaultRule {
  readonly fault: FaultKind
  /** From 0 to 1; 1 when absent. */
  readonly rate?: number
  readonly match?: FaultMatch
  /** How often at most; without end when absent. */
  readonly times?: number
  /**
   * Whether the broker does the work before it fails. Unless told, it does for `half-body` and `junk-json`, and does
   * not for the rest.
   */
  readonly applied?: boolean
}

export interface Fault {
  readonly kind: FaultKind
  readonly applied: boolean
}

const APPLIED_BY_DEFAULT: ReadonlySet<FaultKind> = new Set(['half-body', 'junk-json'])

/** Which requests go wrong, and how: the first rule that matches and whose chance comes up. */
export class FaultPlan {
  readonly #random: Random
  #rules: { readonly rule: FaultRule; left: number }[] = []

  constructor(random: Random) {
    this.#random = random
  }

  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map((rule) => ({ rule, left: rule.times ?? Number.POSITIVE_INFINITY }))
  }

  next(method: string, target: string): Fault | null {
    if (this.#rules.length === 0) return null
    for (const entry of this.#rules) {
      const { rule } = entry
      if (entry.left <= 0 || !matches(rule.match, method, target)) continue
      if (this.#random() >= (rule.rate ?? 1)) continue
      entry.left -= 1
      return { kind: rule.fault, applied: rule.applied ?? APPLIED_BY_DEFAULT.has(rule.fault) }
    }
    return null
  }
}

function matches(match: FaultMatch | undefined, method: string, target: string): boolean {
  if (match === undefined) return true
  if (match.method !== undefined && match.method !== method) return false
  if (match.path === undefined) return true
  return typeof match.path === 'string' ? target.includes(match.path) : match.path.test(target)
}
