/**
 * What happens to work that met an error, named once:
 * - `retry`: transient; the job backs off and runs again
 * - `wait`: the broker cannot take work now; its queue waits, the job keeps its attempts
 * - `stop`: permanent; a person has to act
 */
export type Fate = 'retry' | 'wait' | 'stop'

export interface ErrorDetails {
  readonly code: string
  readonly fate: Fate
  /** What happened, and to what. */
  readonly message: string
  /** What to do next. */
  readonly hint?: string
  /** With the fate `wait`: how long, when that is known. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/** The one error class of the service; `code` is stable and searchable, the message is for a person. */
export class KeymeshError extends Error {
  override readonly name = 'KeymeshError'
  readonly code: string
  readonly fate: Fate
  readonly hint: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(details: ErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = details.code
    this.fate = details.fate
    this.hint = details.hint
    this.retryAfterMs = details.retryAfterMs
  }
}

/** One problem of an input, with the place a person can open. */
export interface Problem {
  readonly message: string
  /** A path inside the input, such as `brokers[0].management.url`. */
  readonly path?: string
  readonly file?: string
  /** 1-based. */
  readonly line?: number
}

/** Bad input: every problem at once, nothing written. */
export class InvalidInputError extends KeymeshError {
  readonly problems: readonly Problem[]

  constructor(what: string, problems: readonly Problem[]) {
    super({
      code: 'INVALID_INPUT',
      fate: 'stop',
      message: `${what} has ${problems.length} problem${problems.length === 1 ? '' : 's'}:\n${problems.map(problemLine).join('\n')}`,
      hint: 'Nothing was written. Correct the problems above and try again.',
    })
    this.problems = problems
  }
}

export function problemLine(problem: Problem): string {
  const place = [problem.file, problem.line].filter((part) => part !== undefined).join(':')
  return [place, problem.path, problem.message].filter((part) => part !== undefined && part !== '').join(': ')
}

/** The fate of any thrown value: what is not ours is transient until proven otherwise. */
export function fateOf(error: unknown): Fate {
  return error instanceof KeymeshError ? error.fate : 'retry'
}

export function codeOf(error: unknown): string {
  return error instanceof KeymeshError ? error.code : 'UNEXPECTED'
}

/** One line for a person and for the database: control characters and lone surrogates out, bounded. */
export function errorLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const hint = error instanceof KeymeshError && error.hint !== undefined ? ` ${error.hint}` : ''
  return `${text}${hint}`.toWellFormed().replace(CONTROL_CHARACTERS, ' ').slice(0, 2000)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed (PostgreSQL refuses NUL)
const CONTROL_CHARACTERS = /[\u0000-\u0009\u000b-\u001f\u007f]/g
