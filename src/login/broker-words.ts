import { Buffer } from 'node:buffer'
import { notVerified, type Verdict } from '../domain/verdict.ts'
import type { LoginAttempt } from '../reconcile/login-port.ts'

/**
 * The texts by which a Solace broker tells one refusal from another, in every protocol that has room for one. A
 * username that it does not know gets the message VPN's `default` one, so `shut down` may be said of that.
 */
const MEANINGS: readonly { readonly words: RegExp; readonly verdict: Verdict }[] = [
  {
    words: /client username is shut ?down/i,
    verdict: {
      outcome: 'disabled',
      detail: 'The client username is shut down, or it is unknown and the default one is shut down.',
    },
  },
  {
    words: /message vpn (?:is )?(?:unavailable|shut ?down)/i,
    verdict: { outcome: 'vpn-down', detail: 'The message VPN is shut down.' },
  },
  {
    words: /message vpn (?:is )?(?:not allowed|unknown)|unknown message vpn/i,
    verdict: { outcome: 'vpn-unknown', detail: 'The broker knows no such message VPN.' },
  },
  {
    words: /basic authentication is shut ?down/i,
    verdict: notVerified('authentication-type', 'Basic authentication is shut down in the message VPN.'),
  },
  {
    words: /too many (?:clients|connections)/i,
    verdict: { outcome: 'busy', detail: 'The broker takes no more connections.' },
  },
  {
    words: /\bacl denied/i,
    verdict: { outcome: 'denied', detail: 'The login is good; the ACL profile denies what the probe did.' },
  },
]

export const fromBrokerWords = (text: string): Verdict | null =>
  MEANINGS.find(({ words }) => words.test(text))?.verdict ?? null

const MAX_QUOTED_LENGTH = 120

/**
 * What a broker said, to quote in a detail: ` ("Some Text")`, one short line. Empty when there is nothing to quote, or
 * when what was said repeats the password.
 */
export function quoted(text: string, { username, password }: LoginAttempt): string {
  const secret = password.reveal()
  const forms = [secret, encodeURIComponent(secret.toWellFormed()), basicToken(username, secret)]
  if (forms.some((form) => form !== '' && text.includes(form))) return ''
  const line = text.replace(/[^\x21-\x7e]+/g, ' ').trim()
  if (line === '') return ''
  return ` ("${line.length > MAX_QUOTED_LENGTH ? `${line.slice(0, MAX_QUOTED_LENGTH)}…` : line}")`
}

export const basicToken = (username: string, password: string): string =>
  Buffer.from(`${username}:${password}`, 'utf8').toString('base64')
