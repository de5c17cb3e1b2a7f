import { hasUnsafeCharacters } from './names.ts'

// Problems: a sentence that follows the name of the thing ("… must be …"), or null when the text is good.

export const PASSWORD_MIN_LENGTH = 8
export const PASSWORD_MAX_LENGTH = 256

/** A user signs in by it; it stands in paths and log lines. An e-mail address is one. */
export function userNameProblem(text: string): string | null {
  if (text.length < 1 || text.length > 128) return `must be 1 to 128 characters long, it has ${text.length}`
  if (!/^[A-Za-z0-9][A-Za-z0-9._@+-]*$/.test(text)) {
    return 'may contain letters, digits and `.`, `_`, `@`, `+`, `-`, and begins with a letter or digit'
  }
  return null
}

/** The answer never contains the password. */
export function passwordProblem(text: string): string | null {
  if (text.length < PASSWORD_MIN_LENGTH || text.length > PASSWORD_MAX_LENGTH) {
    return `must be ${PASSWORD_MIN_LENGTH} to ${PASSWORD_MAX_LENGTH} characters long`
  }
  return hasUnsafeCharacters(text) ? 'must not contain control characters' : null
}

/** The name of an account stands in the path of the token exchange. */
export function accountNameProblem(text: string): string | null {
  if (text.length < 2 || text.length > 64) return `must be 2 to 64 characters long, it has ${text.length}`
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text)) {
    return 'may contain letters, digits and `.`, `_`, `-`, and begins with a letter or digit'
  }
  return null
}
