import type { Problem } from '../domain/errors.ts'
import type { ReadPortal } from '../domain/portal-file.ts'
import type { ImportChange } from '../store/import-changes.ts'

export interface ImportRequest {
  readonly portal: ReadPortal
  readonly dryRun: boolean
  /** Also removes what the file does not hold. */
  readonly prune: boolean
  /** The number of deletions that a person agreed to. */
  readonly confirmedDeletions?: number
}

/** The last one is `done`. */
export type ImportEvent =
  | { readonly type: 'progress'; readonly phase: 'comparing' | 'writing' }
  | ({ readonly type: 'done' } & ImportOutcome)

export interface ImportOutcome {
  readonly changes: readonly ImportChange[]
  readonly warnings: readonly Problem[]
  /** Registrations to reconcile; in a dry run none. */
  readonly raised: readonly string[]
}
