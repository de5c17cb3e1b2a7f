import { hkdfSync } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import { type AccountId, accountId } from '../domain/ids.ts'
import type { KeyRing } from './key-ring.ts'

export interface UserTokenClaims {
  readonly userId: string
  /** The account that the token was exchanged for; null before. */
  readonly accountId: AccountId | null
  readonly generation: number
}

export interface UserTokens {
  issue(claims: UserTokenClaims, lifetimeMs: number): Promise<string>
  /** Null for every token that is not ours, was altered, or is expired. */
  verify(token: string): Promise<UserTokenClaims | null>
}

export interface UserTokenOptions {
  /** The ring as it is now. A token counts while the key that signed it is in the ring. */
  readonly ring: () => Promise<KeyRing>
  readonly now: () => number
}

const ALGORITHM = 'HS256'
/** Names us and keeps these tokens apart from whatever else may be signed with keys of the ring. */
const ISSUER = 'keymesh'
const AUDIENCE = 'keymesh-user'
const KEY_PURPOSE = 'keymesh user token HS256 v1'

const claimsSchema = z.object({
  sub: z.string(),
  iat: z.number(),
  exp: z.number(),
  gen: z.int(),
  acc: z.string().optional(),
})

/** JWTs, signed by HMAC with a key that is derived from the ring's; `kid` in the header says from which. */
export function createUserTokens({ ring, now }: UserTokenOptions): UserTokens {
  return {
    issue: async (claims, lifetimeMs) => {
      const { current, keys } = await ring()
      const issuedAt = Math.floor(now() / 1000)
      return await new SignJWT({
        gen: claims.generation,
        ...(claims.accountId === null ? {} : { acc: claims.accountId }),
      })
        .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT', kid: current })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(claims.userId)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + Math.ceil(lifetimeMs / 1000))
        .sign(signingKey({ current, keys }, current))
    },
    verify: async (token) => {
      const keys = await ring()
      try {
        const { payload } = await jwtVerify(token, ({ kid }) => signingKey(keys, kid), {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: 'JWT',
          currentDate: new Date(now()),
        })
        const { sub, gen, acc } = claimsSchema.parse(payload)
        return { userId: sub, generation: gen, accountId: acc === undefined ? null : accountId(acc) }
      } catch (error) {
        if (error instanceof errors.JOSEError || error instanceof z.ZodError) return null
        throw error
      }
    },
  }
}

/** One-way: who learns it learns nothing of the key that seals secrets. */
function signingKey(ring: KeyRing, kid: string | undefined): Uint8Array {
  const key = kid === undefined ? undefined : ring.keys.get(kid)
  if (key === undefined) throw new errors.JWKSNoMatchingKey('the ring has no such key')
  return new Uint8Array(hkdfSync('sha256', key.export(), new Uint8Array(), KEY_PURPOSE, 32))
}
