import { z } from 'zod'
import { consumerKeyProblem, consumerSecretProblem } from '../../../domain/names.ts'
import { judged, name, ofRegistration } from './registration-id.ts'

const LETTERS = /^[a-zA-Z0-9_-]*$/
const ALLOWED = 'may contain letters, digits, `_` and `-` only'
/** Epoch milliseconds that every date can hold. */
const MAX_TIME_MS = 8_640_000_000_000_000

const consumerKey = judged(z.string().min(8).max(64).regex(LETTERS, ALLOWED), consumerKeyProblem)
const consumerSecret = judged(z.string().min(8).max(64).regex(LETTERS, ALLOWED), consumerSecretProblem)

const time = z.int().min(-1).max(MAX_TIME_MS)

const secret = z
  .strictObject({
    consumerKey: consumerKey.describe('The client username; unique in the account.'),
    consumerSecret: consumerSecret.optional().describe('The client password.'),
  })
  .meta({ id: 'Secret' })

const fields = {
  name: name.optional(),
  secret: secret.optional(),
  expiresAt: time.optional().describe('Epoch milliseconds; -1: never.'),
  issuedAt: time.optional().describe('Set by the service; what is sent here is ignored.'),
}

/** What is left out is generated: the key and the secret, or the secret. */
export const credentialCreation = z.strictObject(fields).meta({ id: 'CredentialsRequest' })

/** What is left out stays. */
export const credentialUpdate = z.strictObject(fields)

/** What clients log in with. */
export const credential = z
  .strictObject({
    name: z.string(),
    secret: z.strictObject({ consumerKey: z.string(), consumerSecret: z.string() }).meta({ id: 'SecretView' }),
    issuedAt: z.int().describe('Epoch milliseconds; of the newest secret.'),
    expiresAt: z.int().describe('Epoch milliseconds; -1: never.'),
  })
  .meta({ id: 'CredentialsView' })

export const ofCredential = ofRegistration.extend({
  consumerKey: z.string().min(1).max(188).regex(LETTERS, ALLOWED),
})
