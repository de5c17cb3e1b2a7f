/**
 * Error codes of SEMP v2, all answered with HTTP 400: the table of docs.solace.com/Admin/SEMP/SEMP-Error-Handling.htm,
 * and for 10, 490 and 535 what public clients of real brokers recorded.
 */
export const SEMP_CODES = {
  FAIL: 2,
  NOT_FOUND: 6,
  ALREADY_EXISTS: 10,
  INVALID_PARAMETER: 11,
  NOT_SUPPORTED: 14,
  PARSE_ERROR: 27,
  UNAUTHORIZED: 72,
  NOT_ALLOWED: 89,
  MISSING_PARAMETER: 228,
  CONFIGDB_OBJECT_DEPENDENCY: 490,
  INVALID_PATH: 535,
} as const
export type SempStatus = keyof typeof SEMP_CODES

/** A request that the broker refuses; becomes `meta.error`. */
export class SempFailure extends Error {
  override readonly name = 'SempFailure'
  readonly status: SempStatus

  constructor(status: SempStatus, description: string) {
    super(description)
    this.status = status
  }
}
