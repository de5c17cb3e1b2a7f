import { format, inspect } from 'node:util'
import { deserialize, serialize } from 'node:v8'
import pino from 'pino'
import { describe, expect, it } from 'vitest'
import { errorLine, InvalidInputError, KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'

const TEXT = 'correct-horse-battery'
const secret = new Secret(TEXT)

class Holder {
  readonly inner = secret
}

function logged(): string {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  log.info({ secret, nested: [{ secret }] }, `login with ${secret}`)
  log.error(new KeymeshError({ code: 'X', fate: 'stop', message: `refused ${secret}`, cause: secret }))
  return lines.join('')
}

const ways: Readonly<Record<string, () => unknown>> = {
  String: () => String(secret),
  'a template': () => `${secret}`,
  concatenation: () => `${'a'}${secret}b`,
  'a comparison key': () => ({ [String(secret)]: 1 }),
  'a number': () => Number(secret),
  'JSON of itself': () => JSON.stringify(secret),
  'JSON of what holds it': () => JSON.stringify({ deep: [{ secret, holder: new Holder() }] }),
  inspect: () => inspect(secret),
  'inspect of all that is hidden': () =>
    inspect({ holder: new Holder() }, { showHidden: true, depth: 9, getters: true }),
  'inspect without custom functions': () => inspect(secret, { customInspect: false, showHidden: true }),
  'format %s': () => format('%s', secret),
  'format %o': () => format('%o', { secret }),
  'format %O': () => format('%O', secret),
  'format %j': () => format('%j', { secret }),
  'a structured clone': () => JSON.stringify(structuredClone({ secret })) + inspect(structuredClone(secret)),
  'a message to another thread': () => inspect(deserialize(serialize({ secret })), { showHidden: true }),
  'a spread': () => JSON.stringify({ ...secret }),
  'its own keys': () => [...Object.keys(secret), ...Object.getOwnPropertyNames(secret), ...Reflect.ownKeys(secret)],
  'its entries': () => JSON.stringify(Object.entries(secret)),
  'an error': () => inspect(new KeymeshError({ code: 'X', fate: 'stop', message: `${secret}`, cause: { secret } })),
  'an error line': () => errorLine(new Error(`bad password ${secret}`)),
  'an input error': () => inspect(new InvalidInputError('the file', [{ message: `${secret}` }])),
  'a log line': logged,
}

describe('Secret', () => {
  it.each(Object.entries(ways))('is not shown by %s', (_, show) => {
    expect(inspect(show(), { depth: 9 })).not.toContain(TEXT)
  })

  it('is named where it would stand', () => {
    expect(`${secret} ${JSON.stringify({ secret })} ${inspect(secret)}`).toBe('[secret] {"secret":"[secret]"} [secret]')
  })

  it('gives its text to those who ask for it by name', () => {
    expect(secret.reveal()).toBe(TEXT)
  })
})
