import { inspect } from 'node:util'
import fc from 'fast-check'
import { flattenedDecrypt } from 'jose'
import { describe, expect, it } from 'vitest'
import { KeymeshError } from '../../src/domain/errors.ts'
import type { SealPlace } from '../../src/domain/seal-place.ts'
import { Secret } from '../../src/domain/secret.ts'
import { addKey, type KeyRing, newKey, newKeyRing, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'
import { createSealer, kidOf } from '../../src/secrets/seal.ts'

const place: SealPlace = { accountId: 'acme', table: 'credentials', rowId: 'r1', column: 'secret', version: 3 }
const placeArbitrary = fc.record({
  accountId: fc.string({ unit: 'binary' }),
  table: fc.string(),
  rowId: fc.string({ unit: 'binary' }),
  column: fc.string(),
  version: fc.nat(),
})
const secretArbitrary = fc.string({ unit: 'grapheme', maxLength: 200 })

async function failure(act: Promise<unknown>): Promise<KeymeshError> {
  return act.then(
    () => {
      throw new Error('it opened')
    },
    (error: unknown) => {
      if (error instanceof KeymeshError) return error
      throw error
    },
  )
}

function withNextKey(ring: KeyRing): KeyRing {
  const { kid, key } = newKey()
  return promoteKey(addKey(ring, kid, key), kid)
}

describe('a sealed secret', () => {
  const ring = newKeyRing()
  const sealer = createSealer(ring)

  it('opens at its place to the same text', async () => {
    await fc.assert(
      fc.asyncProperty(secretArbitrary, placeArbitrary, async (text, at) => {
        const sealed = await sealer.seal(new Secret(text), at)
        expect((await sealer.open(sealed, at)).reveal()).toBe(text)
        expect(kidOf(sealed)).toBe(ring.current)
      }),
    )
  })

  it('never holds the text, and is another one each time', async () => {
    const text = 'correct horse battery staple'
    const sealed = await sealer.seal(new Secret(text), place)
    expect(sealed).not.toContain(text)
    expect(sealed).not.toContain(Buffer.from(text).toString('base64url').slice(0, 20))
    expect(await sealer.seal(new Secret(text), place)).not.toBe(sealed)
  })

  it('opens at no other place', async () => {
    await fc.assert(
      fc.asyncProperty(placeArbitrary, placeArbitrary, async (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other))
        const sealed = await sealer.seal(new Secret('top secret'), one)
        expect((await failure(sealer.open(sealed, other))).code).toBe('SECRET_UNREADABLE')
      }),
    )
  })

  const moves: { title: string; change: Partial<SealPlace> }[] = [
    { title: 'another account', change: { accountId: 'acm' } },
    { title: 'another table', change: { table: 'brokers' } },
    { title: 'another row', change: { rowId: 'r2' } },
    { title: 'another column', change: { column: 'secrets' } },
    { title: 'an older version', change: { version: 2 } },
    { title: 'a place whose parts join to the same text', change: { accountId: 'acme","credentials', table: 'x' } },
    { title: 'parts shifted by one', change: { table: 'credentialsr', rowId: '1' } },
  ]
  it.each(moves)('does not open at $title', async ({ change }) => {
    const sealed = await sealer.seal(new Secret('top secret'), place)
    expect((await failure(sealer.open(sealed, { ...place, ...change }))).code).toBe('SECRET_UNREADABLE')
  })

  it('does not open when any character of it is another', async () => {
    const sealed = await sealer.seal(new Secret('pw'), place)
    for (let index = 0; index < sealed.length; index++) {
      for (const other of ['A', 'B', '"', ' ']) {
        if (sealed[index] === other) continue
        const changed = sealed.slice(0, index) + other + sealed.slice(index + 1)
        expect(['SECRET_UNREADABLE', 'KEY_MISSING']).toContain((await failure(sealer.open(changed, place))).code)
      }
    }
  })

  it('does not open when characters are added, cut, or fields come in another form', async () => {
    const sealed = await sealer.seal(new Secret('pw'), place)
    const parsed = JSON.parse(sealed)
    const others = [
      ` ${sealed}`,
      `${sealed}\n`,
      sealed.slice(0, -1),
      '',
      'null',
      JSON.stringify({ ...parsed, aad: 'e30' }),
      JSON.stringify({ ...parsed, tag: parsed.tag.slice(0, 6) }),
      JSON.stringify({ ...parsed, iv: parsed.iv.slice(0, 8) }),
      JSON.stringify({ ...parsed, tag: `${parsed.tag}==` }),
      JSON.stringify({ tag: parsed.tag, iv: parsed.iv, ciphertext: parsed.ciphertext, protected: parsed.protected }),
    ]
    for (const changed of others) {
      expect((await failure(sealer.open(changed, place))).code, changed).toBe('SECRET_UNREADABLE')
    }
  })

  it('accepts no header but its own, whatever the algorithm says', async () => {
    const sealed = JSON.parse(await sealer.seal(new Secret('pw'), place))
    for (const header of [{ alg: 'none' }, { alg: 'dir', enc: 'A128GCM', kid: ring.current }]) {
      const changed = { ...sealed, protected: Buffer.from(JSON.stringify(header)).toString('base64url') }
      expect((await failure(sealer.open(JSON.stringify(changed), place))).code).toBe('SECRET_UNREADABLE')
    }
  })

  it('is a flattened JWE that the library opens, once the reader adds the associated data', async () => {
    const sealed = JSON.parse(await sealer.seal(new Secret('pässwörd'), place))
    const aad = Buffer.from(JSON.stringify(['keymesh', 'acme', 'credentials', 'r1', 'secret', 3])).toString('base64url')
    const key = ring.keys.get(ring.current)
    if (key === undefined) throw new Error('no key')
    const { plaintext, protectedHeader } = await flattenedDecrypt({ ...sealed, aad }, key)
    expect(new TextDecoder().decode(plaintext)).toBe('pässwörd')
    expect(protectedHeader).toEqual({ alg: 'dir', enc: 'A256GCM', kid: ring.current })
  })

  it('refuses what is not text rather than change it', async () => {
    expect((await failure(sealer.seal(new Secret('a\ud800b'), place))).code).toBe('SECRET_NOT_TEXT')
  })

  it('shows nothing of the secret or the key in an error', async () => {
    const text = 'Sup3r-Secret-Value'
    const sealed = await sealer.seal(new Secret(text), place)
    const error = await failure(sealer.open(sealed, { ...place, version: 4 }))
    const shown = inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error)
    expect(shown).not.toContain(text)
    expect(shown).not.toContain(ring.keys.get(ring.current)?.export().toString('base64url'))
    expect(error.message).toContain('credentials.secret of r1')
  })
})

describe('rotation of keys', () => {
  it('opens what an older key sealed, and reseals it once', async () => {
    const first = newKeyRing()
    const sealed = await createSealer(first).seal(new Secret('pw'), place)
    const second = withNextKey(first)
    const sealer = createSealer(second)
    expect((await sealer.open(sealed, place)).reveal()).toBe('pw')
    const resealed = await sealer.reseal(sealed, place)
    if (resealed === null) throw new Error('it was not resealed')
    expect(kidOf(resealed)).toBe(second.current)
    expect(await sealer.reseal(resealed, place)).toBeNull()
    const third = createSealer(removeKey(second, first.current))
    expect((await third.open(resealed, place)).reveal()).toBe('pw')
    const error = await failure(third.open(sealed, place))
    expect(error).toMatchObject({ code: 'KEY_MISSING', message: expect.stringContaining(first.current) })
  })

  it('does not open with another key of the same id', async () => {
    const ring = newKeyRing()
    const sealed = await createSealer(ring).seal(new Secret('pw'), place)
    const wrong: KeyRing = { current: ring.current, keys: new Map([[ring.current, newKey().key]]) }
    expect((await failure(createSealer(wrong).open(sealed, place))).code).toBe('SECRET_UNREADABLE')
    expect((await failure(createSealer(wrong).reseal(sealed, place))).code).toBe('SECRET_UNREADABLE')
  })
})
