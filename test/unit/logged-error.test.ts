import { describe, expect, it } from 'vitest'
import { loggedError } from '../../src/context.ts'

describe('an error in the log', () => {
  it('says what it is and leaves out what it carries', () => {
    const error = Object.assign(new Error('null value in a column'), {
      code: '23502',
      detail: 'Failing row contains (sealed-text).',
      client: { connectionParameters: { user: 'keymesh' } },
    })
    expect(loggedError(error)).toEqual({
      type: 'Error',
      code: '23502',
      message: 'null value in a column',
      stack: error.stack,
    })
  })
})
