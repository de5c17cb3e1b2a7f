import { decodeProtectedHeader, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { accountId } from '../../src/domain/ids.ts'
import { Secret } from '../../src/domain/secret.ts'
import { addKey, type KeyRing, newKey, newKeyRing, promoteKey, removeKey } from '../../src/secrets/key-ring.ts'
import { createPasswords } from '../../src/secrets/passwords.ts'
import { createUserTokens } from '../../src/secrets/user-tokens.ts'

const START_MS = Date.parse('2026-03-01T12:00:00Z')
const HOUR_MS = 3_600_000

function tokensOf(first: KeyRing) {
  const world = { ring: first, nowMs: START_MS }
  return { world, tokens: createUserTokens({ ring: async () => world.ring, now: () => world.nowMs }) }
}

const CLAIMS = { userId: 'user1', accountId: accountId('north'), generation: 3 }

describe('a user token', () => {
  it('says who it is for, with and without an account', async () => {
    const { tokens } = tokensOf(newKeyRing())
    for (const claims of [CLAIMS, { ...CLAIMS, accountId: null }]) {
      expect(await tokens.verify(await tokens.issue(claims, HOUR_MS))).toEqual(claims)
    }
  })

  it('ends with its time', async () => {
    const { tokens, world } = tokensOf(newKeyRing())
    const token = await tokens.issue(CLAIMS, HOUR_MS)
    world.nowMs = START_MS + HOUR_MS - 1000
    expect(await tokens.verify(token)).toEqual(CLAIMS)
    world.nowMs = START_MS + HOUR_MS
    expect(await tokens.verify(token)).toBeNull()
  })

  it('names the key that signed it, and counts while the ring has that key', async () => {
    const ring = newKeyRing()
    const { tokens, world } = tokensOf(ring)
    const old = await tokens.issue(CLAIMS, HOUR_MS)
    expect(decodeProtectedHeader(old)).toMatchObject({ alg: 'HS256', kid: ring.current })
    const { kid, key } = newKey()
    world.ring = promoteKey(addKey(ring, kid, key), kid)
    const fresh = await tokens.issue(CLAIMS, HOUR_MS)
    expect(decodeProtectedHeader(fresh).kid).toBe(kid)
    expect(await tokens.verify(old)).toEqual(CLAIMS)
    world.ring = removeKey(world.ring, ring.current)
    expect(await tokens.verify(old)).toBeNull()
    expect(await tokens.verify(fresh)).toEqual(CLAIMS)
  })

  it('of another ring, altered, or of another kind counts nothing', async () => {
    const ring = newKeyRing()
    const { tokens } = tokensOf(ring)
    const token = await tokens.issue(CLAIMS, HOUR_MS)
    const [head = '', payload = '', signature = ''] = token.split('.')
    const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const unsigned = encoded({ alg: 'none', typ: 'JWT', kid: ring.current })
    const sealingKey = ring.keys.get(ring.current)
    if (sealingKey === undefined) throw new Error('a ring has a current key')
    const bySealingKey = await new SignJWT({ gen: 3 })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: ring.current })
      .setSubject('user1')
      .setIssuer('keymesh')
      .setAudience('keymesh-user')
      .setIssuedAt(START_MS / 1000)
      .setExpirationTime(START_MS / 1000 + 60)
      .sign(sealingKey)
    const forged = [
      await tokensOf(newKeyRing()).tokens.issue(CLAIMS, HOUR_MS),
      `${head}.${encoded({ sub: 'root' })}.${signature}`,
      `${unsigned}.${payload}.`,
      `${unsigned}.${payload}.${signature}`,
      bySealingKey,
      `${token}x`,
      'not.a.token',
      '',
    ]
    for (const text of forged) expect(await tokens.verify(text), text).toBeNull()
  })
})

describe('a password', () => {
  const passwords = createPasswords()
  const password = new Secret('correct horse battery')

  it('is kept as argon2id with fixed parameters and a salt of its own', async () => {
    const [one, other] = await Promise.all([passwords.hash(password), passwords.hash(password)])
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(one).not.toBe(other)
    expect(await passwords.verify(one, password)).toBe(true)
    expect(await passwords.verify(one, new Secret('correct horse batterx'))).toBe(false)
  })

  it('of an unknown user is never right, and takes as long as that of a known one', async () => {
    const stored = await passwords.hash(password)
    await passwords.verify(null, password)
    const took = async (hash: string | null): Promise<number> => {
      const began = performance.now()
      expect(await passwords.verify(hash, new Secret('wrong'))).toBe(false)
      return performance.now() - began
    }
    const samples: { readonly known: number; readonly unknown: number }[] = []
    for (let round = 0; round < 9; round += 1) samples.push({ known: await took(stored), unknown: await took(null) })
    // The fastest of each, taken in turns: what a busy machine adds is not what is compared. No hash takes no time.
    const [known, unknown] = (['known', 'unknown'] as const).map((which) =>
      Math.min(...samples.map((each) => each[which])),
    )
    expect((unknown ?? 0) / (known ?? 1)).toBeGreaterThan(0.2)
    expect((unknown ?? 0) / (known ?? 1)).toBeLessThan(5)
  })

  it('waits its turn, and too many are turned away', async () => {
    const stored = await passwords.hash(password)
    const results = await Promise.allSettled(Array.from({ length: 130 }, () => passwords.verify(stored, password)))
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(refused).toHaveLength(130 - 102)
    expect(refused[0]).toMatchObject({ code: 'BUSY', fate: 'retry' })
    expect(await passwords.verify(stored, password)).toBe(true)
  })
})
