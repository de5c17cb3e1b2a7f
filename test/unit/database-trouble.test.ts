import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { failureOf } from '../../src/http/errors.ts'
import { databaseTrouble } from '../../src/store/database-trouble.ts'

const withCode = (code: string, message = 'a word of the server'): Error => Object.assign(new Error(message), { code })

const CASES: readonly (readonly [what: string, error: Error, code: string])[] = [
  ['a full disk', withCode('53100', 'could not extend file "base/1/2": No space left on device'), 'DATABASE_DISK_FULL'],
  ['too many connections', withCode('53300'), 'DATABASE_TOO_MANY_CONNECTIONS'],
  ['a standby', withCode('25006'), 'DATABASE_READ_ONLY'],
  ['a shutdown', withCode('57P01'), 'DATABASE_UNAVAILABLE'],
  ['a crash', withCode('57P02'), 'DATABASE_UNAVAILABLE'],
  ['a start', withCode('57P03'), 'DATABASE_UNAVAILABLE'],
  ['a connection that failed', withCode('08006'), 'DATABASE_UNAVAILABLE'],
  ['nobody there', withCode('ECONNREFUSED'), 'DATABASE_UNAVAILABLE'],
  ['a reset', withCode('ECONNRESET'), 'DATABASE_UNAVAILABLE'],
  ['a goodbye', new Error('Connection terminated unexpectedly'), 'DATABASE_UNAVAILABLE'],
  ['silence', new Error('timeout exceeded when trying to connect'), 'DATABASE_UNAVAILABLE'],
]

describe('what is wrong with the database', () => {
  it.each(CASES)('%s: is told to a person, and answered with 503', (_what, error, code) => {
    const trouble = databaseTrouble(error)
    expect(trouble).toMatchObject({ code, fate: 'retry', hint: expect.any(String) })
    expect(trouble?.message).toContain(error.message)
    expect(failureOf(error).status).toBe(503)
    expect(failureOf(error).answer.message).not.toContain(error.message)
  })

  it.each([
    ['a unique key', withCode('23505')],
    ['a statement that is wrong', withCode('42601')],
    ['an error of ours', new KeymeshError({ code: 'ECONNREFUSED', fate: 'stop', message: 'ours' })],
    ['a defect', new TypeError('undefined is not a function')],
    ['no error', 'ECONNREFUSED'],
  ])('is not %s', (_what, error) => {
    expect(databaseTrouble(error)).toBeNull()
  })
})
