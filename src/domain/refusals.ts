import { KeymeshError } from './errors.ts'

// What a store function answers when a person asks for what cannot be: the message says which object and why.

/** The object is not there, or belongs to another account: nobody may learn which of the two. */
export function notFound(kind: string, id: string): KeymeshError {
  return new KeymeshError({
    code: 'NOT_FOUND',
    fate: 'stop',
    message: `There is no ${kind} ${quoted(id)}.`,
  })
}

/** The request fits no longer or not yet: a name is taken, a state does not allow it. */
export function conflict(message: string, hint?: string): KeymeshError {
  return new KeymeshError({ code: 'CONFLICT', fate: 'stop', message, ...(hint === undefined ? {} : { hint }) })
}

/** Somebody changed the object after the caller read it. */
export function preconditionFailed(kind: string, id: string): KeymeshError {
  return new KeymeshError({
    code: 'PRECONDITION_FAILED',
    fate: 'stop',
    message: `The ${kind} ${quoted(id)} was changed since it was read.`,
    hint: 'Read it again and repeat the change with the new ETag.',
  })
}

/** The caller is known, and may not do this. */
export function forbidden(message: string, hint?: string): KeymeshError {
  return new KeymeshError({ code: 'FORBIDDEN', fate: 'stop', message, ...(hint === undefined ? {} : { hint }) })
}

/** Long enough to recognise, short enough for a message. */
function quoted(id: string): string {
  return `"${id.length > 64 ? `${id.slice(0, 63)}…` : id}"`
}
