import { InvalidInputError } from '../domain/errors.ts'
import type { PauseTarget } from './operations.ts'

export function unknownInput(path: string | null, message: string): InvalidInputError {
  return new InvalidInputError('The request', [path === null ? { message } : { path, message }])
}

export const unknownTarget = ({ scope, id }: PauseTarget): InvalidInputError =>
  unknownInput(`${scope}Id`, `there is no ${scope} \`${id}\` in this account`)
