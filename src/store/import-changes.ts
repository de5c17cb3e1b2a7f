/** In the order in which objects need each other. */
export const IMPORT_KINDS = [
  'environment',
  'eventMesh',
  'applicationDomain',
  'broker',
  'eventApi',
  'product',
  'productVersion',
  'registration',
  'accessRequest',
  'credential',
] as const
export type ImportKind = (typeof IMPORT_KINDS)[number]

/** Values are plain JSON; a secret or a large one is left out, so that only the fact of the change is told. */
export interface AttributeChange {
  readonly name: string
  readonly before?: unknown
  readonly after?: unknown
}

/** One difference between the store and a portal file, without secrets. */
export interface ImportChange {
  readonly type: 'create' | 'update' | 'delete'
  readonly kind: ImportKind
  /** Of a version: `id@version`; of what belongs to a registration: `registration/id`. */
  readonly id: string
  /** What differs; for a new object what it has, for a removed one nothing or the state that it keeps. */
  readonly attributes: readonly AttributeChange[]
}

export const versionedId = (id: string, version: string): string => `${id}@${version}`
export const ownedId = (registrationId: string, id: string): string => `${registrationId}/${id}`
