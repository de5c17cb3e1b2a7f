/** Row types by table, as `migrations.ts` creates them. */
export type Schema = Record<never, never>
