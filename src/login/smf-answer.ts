import { notVerified, type Verdict } from '../domain/verdict.ts'
import { networkFailure } from './network-failure.ts'

/** An error of solclientjs, taken apart. */
export interface SmfFailure {
  /** The name in `ErrorSubcode`, such as `LOGIN_FAILURE`. */
  readonly subcode: string
  /** The code of the broker's answer to the login; null when there was none. */
  readonly responseCode: number | null
  /** The library's or the broker's words: searched for codes, never repeated. */
  readonly text: string
}

const NOT_SMF = notVerified('protocol', 'The port does not speak SMF as a broker does.')

/** What a login over SMF that failed proves. */
export const smfVerdict = (failure: SmfFailure): Verdict =>
  failure.responseCode === null || failure.responseCode === 200
    ? withoutAnswer(failure)
    : brokerAnswer(failure.responseCode, failure.subcode)

/**
 * The library sorts the broker's answers by code and text, and calls those that it does not know `LOGIN_FAILURE` too:
 * that a password is wrong is said by 401, or 404, alone. The connect rules of an ACL profile are looked at after the
 * client was authenticated (Solace, "Controlling Client Access with ACL Profiles"), so a client that they turn away had
 * the right password.
 */
function brokerAnswer(code: number, subcode: string): Verdict {
  if (code === 401 || code === 404) {
    return { outcome: 'rejected', detail: `The broker refused the username or the password (${code}).` }
  }
  switch (subcode) {
    case 'CLIENT_USERNAME_IS_SHUTDOWN':
      return { outcome: 'disabled', detail: `The broker says that the client username is shut down (${code}).` }
    case 'CLIENT_ACL_DENIED':
      return {
        outcome: 'denied',
        detail: `The login is good; the ACL profile lets no client connect from this address (${code}).`,
      }
    case 'MESSAGE_VPN_NOT_ALLOWED':
      return { outcome: 'vpn-unknown', detail: `The broker knows no such message VPN (${code}).` }
    case 'MESSAGE_VPN_UNAVAILABLE':
      return { outcome: 'vpn-down', detail: `The message VPN is shut down (${code}).` }
    case 'TOO_MANY_CLIENTS':
      return { outcome: 'busy', detail: `The broker takes no more connections (${code}).` }
    case 'CLIENT_DELETE_IN_PROGRESS':
    case 'GM_UNAVAILABLE':
      return { outcome: 'busy', detail: `The broker cannot serve the client now (${code} ${subcode}).` }
    case 'BASIC_AUTHENTICATION_IS_SHUTDOWN':
      return notVerified('authentication-type', `Basic authentication is shut down in the message VPN (${code}).`)
    default:
      return notVerified('unknown', `The broker refused the login for another reason (${code} ${subcode}).`)
  }
}

/** The login was not answered, or accepted and the session did not come up. */
function withoutAnswer({ subcode, text }: SmfFailure): Verdict {
  switch (subcode) {
    case 'UNRESOLVED_HOSTS':
      return networkFailure({ code: 'ENOTFOUND' })
    case 'TIMEOUT':
    case 'KEEP_ALIVE_FAILURE':
      return notVerified('timeout', `No answer came in time (${subcode}).`)
    case 'COMMUNICATION_ERROR':
      // What cannot be inflated comes under the same name.
      if (/zlib/i.test(text)) return NOT_SMF
      return notVerified('closed', `The connection was closed before the login was answered (${subcode}).`)
    case 'PROTOCOL_ERROR':
    case 'DATA_DECODE_ERROR':
    case 'INVALID_TOPIC_SYNTAX':
      return NOT_SMF
    case 'PARAMETER_OUT_OF_RANGE':
    case 'PARAMETER_CONFLICT':
    case 'PARAMETER_INVALID_TYPE':
      return notVerified('bad-input', `The SMF client does not take this login (${subcode}).`)
    case 'CONNECTION_ERROR':
      return connectionError(text)
    default:
      return notVerified('unknown', `The SMF client gave up (${subcode}).`)
  }
}

/** The code of the system is in the text alone. */
function connectionError(text: string): Verdict {
  const code = /\b(?:E[A-Z]{3,}|ERR_[A-Z0-9_]+)\b/.exec(text)?.[0]
  if (code !== undefined) return networkFailure({ code })
  return /certificate/i.test(text)
    ? notVerified('tls-failed', 'The SMF client does not trust the certificate.')
    : notVerified('unknown', 'The connection failed (CONNECTION_ERROR).')
}
