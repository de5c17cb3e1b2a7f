export interface Violation {
  readonly path: string
  /** 1-based. */
  readonly line: number
  /** Follows the path: "… must not …". */
  readonly message: string
}

export const violationText = ({ path, line, message }: Violation): string => `${path}:${line} ${message}`
