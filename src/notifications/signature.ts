import { createHmac } from 'node:crypto'
import type { Secret } from '../domain/secret.ts'

export interface Signed {
  readonly id: string
  readonly timestampSeconds: number
  readonly body: string
}

/**
 * The headers of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body` with the key that stands in base64 after
 * `whsec_`. Several secrets give several signatures, separated by blanks; a receiver accepts any.
 */
export function signatureHeaders(secrets: readonly Secret[], { id, timestampSeconds, body }: Signed) {
  const content = `${id}.${timestampSeconds}.${body}`
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': secrets.map((secret) => `v1,${signatureOf(secret, content)}`).join(' '),
  }
}

function signatureOf(secret: Secret, content: string): string {
  const key = Buffer.from(secret.reveal().replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(content).digest('base64')
}
