/** Where a sealed secret belongs. It opens there and nowhere else. */
export interface SealPlace {
  readonly accountId: string
  readonly table: string
  /** Names the row in its table; the parts of a longer key must not be joined ambiguously. */
  readonly rowId: string
  readonly column: string
  /** Of the secret, so that an older one put back does not open. */
  readonly version: number
}
