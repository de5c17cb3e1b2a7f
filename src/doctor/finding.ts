import { errorLine, KeymeshError } from '../domain/errors.ts'
import { databaseTrouble } from '../store/database-trouble.ts'

export type Outcome = 'ok' | 'warning' | 'problem' | 'skipped'

/** What one check of the set-up came to. Holds no secret. */
export interface Finding {
  /** What was looked at, such as `database` or `broker broker-eu: login`; the same in every run. */
  readonly check: string
  readonly outcome: Outcome
  /** What was found; why nothing was looked at, when it was skipped. */
  readonly found: string
  /** What to do about it; null when there is nothing to do. */
  readonly fix: string | null
}

export const ok = (check: string, found: string): Finding => ({ check, outcome: 'ok', found, fix: null })
export const warning = (check: string, found: string, fix: string): Finding => ({
  check,
  outcome: 'warning',
  found,
  fix,
})
export const problem = (check: string, found: string, fix: string): Finding => ({
  check,
  outcome: 'problem',
  found,
  fix,
})
export const skipped = (check: string, why: string, fix: string | null = null): Finding => ({
  check,
  outcome: 'skipped',
  found: why,
  fix,
})

/** A problem in the words of an error: its hint says what to do. */
export function failed(check: string, thrown: unknown, fix: string): Finding {
  const error = databaseTrouble(thrown) ?? thrown
  if (error instanceof KeymeshError) return problem(check, firstLine(error.message), error.hint ?? fix)
  return problem(check, errorLine(error), fix)
}

const firstLine = (text: string): string => text.split('\n').join(' ')

/** What is not answered by then counts as not there. */
export async function inTime<Result>(work: Promise<Result>, timeoutMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new KeymeshError({ code: 'NO_ANSWER', fate: 'retry', message: `No answer came in ${timeoutMs / 1000} s.` }),
        ),
      timeoutMs,
    )
  })
  // Its own failure counts even when it comes late.
  work.catch(() => undefined)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
