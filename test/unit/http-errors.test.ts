import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { InvalidInputError, KeymeshError } from '../../src/domain/errors.ts'
import { conflict, forbidden, notFound, preconditionFailed } from '../../src/domain/refusals.ts'
import { errorAnswer, failureOf } from '../../src/http/errors.ts'

const ID = '11111111-2222-4333-8444-555555555555'

function databaseError(code: string): Error {
  const error = new pg.DatabaseError('duplicate key value violates "secret_index"', 1, 'error')
  error.code = code
  return error
}

const fastifyError = (code: string, statusCode: number): Error =>
  Object.assign(new Error('words of the library'), { code, statusCode })

const keymeshError = (code: string, fate: 'stop' | 'retry' | 'wait'): KeymeshError =>
  new KeymeshError({ code, fate, message: 'Words with an inner address 10.0.0.1.' })

describe('what was thrown', () => {
  it.each<readonly [sentence: string, thrown: unknown, status: number, message: string | RegExp]>([
    ['an absent object', notFound('registration', 'app-1'), 404, 'There is no registration "app-1".'],
    ['a conflict', conflict('The name is taken.', 'Choose another.'), 409, 'The name is taken. Choose another.'],
    ['a stale revision', preconditionFailed('product', 'p1'), 412, /was changed since it was read\. Read it again/],
    ['a refusal', forbidden('Only the administrator may.'), 403, 'Only the administrator may.'],
    ['a body that is no JSON', fastifyError('FST_ERR_CTP_INVALID_JSON_BODY', 400), 400, /^The request cannot/],
    ['an error of a plugin that blames the request', fastifyError('FST_NEW', 418), 418, /^The service met/],
    ['a unique violation', databaseError('23505'), 409, /^Another request/],
    ['a deadlock', databaseError('40P01'), 503, /^The service cannot answer now/],
    ['any other error of the database', databaseError('42P01'), 500, /^The service met an error/],
    ['an error of ours that stops', keymeshError('BROKER_BROKEN', 'stop'), 500, /^The service met an error/],
    ['an error of ours that may pass', keymeshError('BROKER_AWAY', 'wait'), 503, /^The service cannot answer now/],
    ['an error that nobody knows', new Error('password hunter2'), 500, /^The service met an error/],
    ['what is no error', 'hunter2', 500, /^The service met an error/],
    ['nothing', null, 500, /^The service met an error/],
  ])('as %s is answered', (_sentence, thrown, status, message) => {
    const failure = failureOf(thrown, ID)
    expect(failure.status).toBe(status)
    expect(failure.answer).toEqual({ message: expect.stringMatching(message), errorId: ID })
    expect(JSON.stringify(failure)).not.toMatch(/hunter2|10\.0\.0\.1|secret_index|words of the library/)
  })

  it('as bad input names every field, bounded', () => {
    const problems = [
      { path: 'name', message: 'must be shorter' },
      { path: 'name', message: 'no' },
      { message: `is ${'very '.repeat(400)}long` },
    ]
    const { status, answer } = failureOf(new InvalidInputError('The request', problems), ID)
    expect(status).toBe(400)
    expect(answer.message).toBe('The request is not valid: name and 1 more.')
    expect(answer.validationDetails?.name).toEqual(['must be shorter', 'no..'])
    expect(answer.validationDetails?.request?.[0]).toHaveLength(1024)
    expect(errorAnswer.safeParse(answer).success).toBe(true)
  })

  it('is cut to the length that the contract allows', () => {
    const { answer } = failureOf(conflict('x'.repeat(1000)), ID)
    expect(answer.message).toHaveLength(256)
    expect(errorAnswer.safeParse(answer).success).toBe(true)
    expect(failureOf(notFound('product', 'y'.repeat(1000)), ID).answer.message.length).toBeLessThan(100)
  })
})
