import { SmfSyntaxError } from './smf-message.ts'

/**
 * The bodies of two SMF protocols, all integers big-endian.
 *
 * ClientCtrl: `version 1 | message type | length of the body | parameters`, each parameter `type (7 bits) | length
 * with its 5 bytes | value`; texts end with NUL. SMP: `kind (7 bits) | length of the body | flags | subscription NUL`.
 */

export const LOGIN_MESSAGE = 0
export const UPDATE_MESSAGE = 1

export interface ClientControl {
  /** 0 logs in, 1 updates. */
  readonly messageType: number
  /** Absent: the message VPN of the port. */
  readonly msgVpnName: string | null
  /** The topic of the client's own inbox, without a last slash; in the answer to a login. */
  readonly inboxTopic: string | null
  /** 0, or absent: user name and password. */
  readonly authenticationScheme: number
}

const VERSION = 1
const BODY_PREFIX_LENGTH = 6
const PARAMETER_PREFIX_LENGTH = 5
const MSG_VPN_NAME = 0x06
const INBOX_TOPIC = 0x08
const AUTHENTICATION_SCHEME = 0x11

/** Throws `SmfSyntaxError`. */
export function decodeClientControl(body: Buffer): ClientControl {
  if (body.length < BODY_PREFIX_LENGTH || (body.readUInt8(0) & 0x07) !== VERSION) {
    throw new SmfSyntaxError('no client control of version 1')
  }
  const length = body.readUInt32BE(2)
  if (length < BODY_PREFIX_LENGTH || length > body.length) throw new SmfSyntaxError(`a body of ${length} bytes`)
  const values = new Map<number, Buffer>()
  let offset = BODY_PREFIX_LENGTH
  while (offset < length) {
    if (offset + PARAMETER_PREFIX_LENGTH > length) throw new SmfSyntaxError('a parameter that is cut off')
    const end = offset + body.readUInt32BE(offset + 1)
    if (end < offset + PARAMETER_PREFIX_LENGTH || end > length) {
      throw new SmfSyntaxError(`a parameter of ${end - offset} bytes`)
    }
    values.set(body.readUInt8(offset) & 0x7f, body.subarray(offset + PARAMETER_PREFIX_LENGTH, end))
    offset = end
  }
  return {
    messageType: body.readUInt8(1),
    msgVpnName: textOf(values.get(MSG_VPN_NAME)),
    inboxTopic: textOf(values.get(INBOX_TOPIC)),
    authenticationScheme: values.get(AUTHENTICATION_SCHEME)?.at(-1) ?? 0,
  }
}

export function encodeClientControl(control: ClientControl): Buffer {
  const parameters: Buffer[] = []
  if (control.msgVpnName !== null) parameters.push(encodeParameter(0x80 | MSG_VPN_NAME, nulText(control.msgVpnName)))
  if (control.inboxTopic !== null) parameters.push(encodeParameter(INBOX_TOPIC, nulText(control.inboxTopic)))
  if (control.authenticationScheme !== 0) {
    parameters.push(encodeParameter(AUTHENTICATION_SCHEME, Buffer.from([control.authenticationScheme])))
  }
  const prefix = Buffer.alloc(BODY_PREFIX_LENGTH)
  prefix.writeUInt8(VERSION, 0)
  prefix.writeUInt8(control.messageType, 1)
  prefix.writeUInt32BE(
    parameters.reduce((sum, { length }) => sum + length, BODY_PREFIX_LENGTH),
    2,
  )
  return Buffer.concat([prefix, ...parameters])
}

export interface SubscriptionRequest {
  readonly kind: 'add' | 'remove'
  readonly topic: string
}

/** Throws `SmfSyntaxError`, also for the kinds that no client sends for itself. */
export function decodeSubscription(body: Buffer): SubscriptionRequest {
  if (body.length < 6 || body.readUInt32BE(1) !== body.length) throw new SmfSyntaxError('no subscription')
  const kind = body.readUInt8(0) & 0x7f
  if (kind > 1) throw new SmfSyntaxError(`a subscription request of kind ${kind}`)
  return { kind: kind === 0 ? 'add' : 'remove', topic: textOf(body.subarray(6)) ?? '' }
}

function encodeParameter(type: number, value: Buffer): Buffer {
  const prefix = Buffer.alloc(PARAMETER_PREFIX_LENGTH)
  prefix.writeUInt8(type, 0)
  prefix.writeUInt32BE(PARAMETER_PREFIX_LENGTH + value.length, 1)
  return Buffer.concat([prefix, value])
}

const nulText = (text: string): Buffer => Buffer.from(`${text}\0`, 'utf8')

/** Up to the NUL, which may be missing. */
function textOf(value: Buffer | undefined): string | null {
  if (value === undefined) return null
  const nul = value.indexOf(0)
  return value.toString('utf8', 0, nul === -1 ? value.length : nul)
}
