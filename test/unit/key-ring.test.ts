import { createSecretKey, randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import { Secret } from '../../src/domain/secret.ts'
import { addKey, formatKeyRing, newKeyRing, parseKeyRing, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'

const a = Buffer.alloc(32, 0xa1)
const b = Buffer.alloc(32, 0xfb)
const A = a.toString('base64url')
const B = b.toString('base64url')

const parse = (text: string) => parseKeyRing(new Secret(text), 'KEYMESH_KEYS')

function thrownBy(act: () => unknown): KeymeshError {
  try {
    act()
  } catch (error) {
    if (error instanceof KeymeshError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('parseKeyRing', () => {
  const accepted: { title: string; text: string; current: string; kids: string[] }[] = [
    { title: 'the list form, the first sealing', text: `k2:${B},k1:${A}`, current: 'k2', kids: ['k2', 'k1'] },
    { title: 'one key with white space around it', text: ` k1:${A} \n`, current: 'k1', kids: ['k1'] },
    { title: 'plain base64 with padding', text: `k1:${b.toString('base64')}`, current: 'k1', kids: ['k1'] },
    {
      title: 'the JSON form, the named one sealing',
      text: JSON.stringify({ current: 'k1', keys: { k2: B, k1: A } }),
      current: 'k1',
      kids: ['k2', 'k1'],
    },
  ]
  it.each(accepted)('reads $title', ({ text, current, kids }) => {
    const ring = parse(text)
    expect(ring.current).toBe(current)
    expect([...ring.keys.keys()]).toEqual(kids)
    expect(ring.keys.get('k1')?.export()).toEqual(text.includes(A) ? a : b)
  })

  const json = JSON.stringify({ current: 'k1', keys: { k1: A, k2: B } })
  const refused: { title: string; text: string; says: string }[] = [
    { title: 'nothing', text: '  ', says: 'it is empty' },
    { title: 'a key without an id', text: A, says: 'ID:KEY' },
    { title: 'a truncated key', text: `k1:${A.slice(0, 40)}`, says: 'key k1 has 30 bytes' },
    { title: 'a key that is too long', text: `k1:${A}${A}`, says: 'key k1 has' },
    { title: 'other characters', text: `k1:${A.slice(0, 42)}!`, says: 'key k1 is not base64url' },
    { title: 'an odd id', text: `k/1:${A}`, says: 'an id of a key' },
    { title: 'an id given twice', text: `k1:${A},k1:${B}`, says: 'key k1 is given twice' },
    { title: 'truncated JSON', text: json.slice(0, -3), says: 'cut short' },
    { title: 'JSON of another form', text: JSON.stringify({ keys: [A] }), says: 'not of the form' },
    { title: 'a current key that is not there', text: json.replace('"k1",', '"k3",'), says: 'not among its keys' },
  ]
  it.each(refused)('refuses $title, without showing a key', ({ text, says }) => {
    const error = thrownBy(() => parse(text))
    expect(error).toMatchObject({ code: 'KEY_RING_INVALID', fate: 'stop', hint: expect.any(String) })
    expect(error.message).toContain('KEYMESH_KEYS')
    expect(error.message).toContain(says)
    const shown = inspect(error, { depth: 10 })
    for (const key of [A, B]) expect(shown).not.toContain(key.slice(0, 12))
  })

  it('refuses the JSON form cut short anywhere', () => {
    for (let length = 1; length < json.length; length++) {
      expect(thrownBy(() => parse(json.slice(0, length))).code).toBe('KEY_RING_INVALID')
    }
  })
})

describe('a key ring', () => {
  it('is written and read back', () => {
    const ring = addKey(newKeyRing(), 'other', createSecretKey(a))
    const again = parseKeyRing(formatKeyRing(ring), 'test')
    expect(again.current).toBe(ring.current)
    expect([...again.keys].map(([kid, key]) => [kid, key.export()])).toEqual(
      [...ring.keys].map(([kid, key]) => [kid, key.export()]),
    )
  })

  it('shows no key when it is printed', () => {
    const ring = parse(`k1:${A}`)
    expect(inspect(ring, { depth: 10, showHidden: true }) + JSON.stringify(ring)).not.toMatch(/a1a1|oaGh/i)
  })

  it('rotates: add, promote, remove', () => {
    const first = parse(`k1:${A}`)
    const added = addKey(first, 'k2', createSecretKey(randomBytes(32)))
    expect(added.current).toBe('k1')
    const promoted = promoteKey(added, 'k2')
    expect(promoted.current).toBe('k2')
    expect([...removeKey(promoted, 'k1').keys.keys()]).toEqual(['k2'])
    expect([...first.keys.keys()]).toEqual(['k1'])
  })

  it('refuses to add twice, to promote what is not there, to remove what seals', () => {
    const ring = parse(`k1:${A}`)
    for (const act of [
      () => addKey(ring, 'k1', createSecretKey(b)),
      () => promoteKey(ring, 'k2'),
      () => removeKey(ring, 'k1'),
    ]) {
      expect(thrownBy(act)).toMatchObject({ code: 'KEY_RING_CHANGE_REFUSED', fate: 'stop' })
    }
  })
})
