/**
 * SMF, version 3, as far as a login needs it: messages on a byte stream, all integers big-endian.
 *
 *     0      flags and version 3            4..7   header length: 12 and the parameters
 *     1      unknown-protocol handling      8..11  message length: header and body
 *            (2 bits), protocol (6 bits)    12..   parameters, then the body
 *     2      priority and flags, 0 here
 *     3      time to live
 *
 * A parameter is `type (with 2 bits of handling) | length | value`, where the length counts itself and the type, and
 * is 0 before a length of 4 bytes. A lightweight one has its type and its length, 0 to 3, in one byte. User name and
 * password are base64 of one byte per character.
 */

export const SMF_HEADER_LENGTH = 12

export const KEEP_ALIVE_PROTOCOL = 0x0b
export const CLIENT_CONTROL_PROTOCOL = 0x0c
export const SUBSCRIPTION_PROTOCOL = 0x0f

export interface SmfResponse {
  readonly code: number
  readonly text: string
}

export interface SmfMessage {
  /** 0 to 63. */
  readonly protocol: number
  readonly timeToLive: number
  /** 24 bits that an answer repeats. */
  readonly correlationTag: number | null
  /** Characters up to U+00FF, as the password. */
  readonly username: string | null
  readonly password: string | null
  readonly response: SmfResponse | null
  readonly body: Buffer
}

/** What was received is not SMF, or larger than allowed. */
export class SmfSyntaxError extends Error {
  override readonly name = 'SmfSyntaxError'
}

const VERSION = 3
const LIGHTWEIGHT = 0x20
const CORRELATION_TAG = 0x23
const USERNAME = 0x06
const PASSWORD = 0x07
const RESPONSE = 0x08

/** The length of the whole message that begins with these 12 bytes. Throws `SmfSyntaxError`. */
export function smfMessageLength(header: Buffer, maxLength: number): number {
  const version = header.readUInt8(0) & 0x07
  const headerLength = header.readUInt32BE(4)
  const length = header.readUInt32BE(8)
  if (version !== VERSION) throw new SmfSyntaxError(`version ${version}`)
  if (headerLength < SMF_HEADER_LENGTH || headerLength > length) {
    throw new SmfSyntaxError(`a header of ${headerLength} bytes in a message of ${length}`)
  }
  if (length > maxLength) throw new SmfSyntaxError(`a message of ${length} bytes`)
  return length
}

/** One whole message. Throws `SmfSyntaxError`. */
export function decodeSmf(message: Buffer): SmfMessage {
  if (message.length < SMF_HEADER_LENGTH) throw new SmfSyntaxError('shorter than its header')
  if (smfMessageLength(message, message.length) !== message.length) throw new SmfSyntaxError('a length that is wrong')
  const headerLength = message.readUInt32BE(4)
  const values = decodeParameters(message.subarray(SMF_HEADER_LENGTH, headerLength))
  return {
    protocol: message.readUInt8(1) & 0x3f,
    timeToLive: message.readUInt8(3),
    correlationTag: values.get(CORRELATION_TAG)?.readUIntBE(0, 3) ?? null,
    username: decodeBase64(values.get(USERNAME)),
    password: decodeBase64(values.get(PASSWORD)),
    response: decodeResponse(values.get(RESPONSE)),
    body: message.subarray(headerLength),
  }
}

export function encodeSmf({ body, response, ...message }: SmfMessage): Buffer {
  const parameters: Buffer[] = []
  if (message.correlationTag !== null) {
    const tag = Buffer.alloc(4)
    tag.writeUInt8(CORRELATION_TAG, 0)
    tag.writeUIntBE(message.correlationTag, 1, 3)
    parameters.push(tag)
  }
  if (message.username !== null) parameters.push(encodeParameter(USERNAME, encodeBase64(message.username)))
  if (message.password !== null) parameters.push(encodeParameter(PASSWORD, encodeBase64(message.password)))
  if (response !== null) {
    const value = Buffer.alloc(4 + response.text.length)
    value.writeUInt32BE(response.code, 0)
    value.write(response.text, 4, 'latin1')
    parameters.push(encodeParameter(RESPONSE, value))
  }
  const header = Buffer.alloc(SMF_HEADER_LENGTH)
  const headerLength = parameters.reduce((sum, { length }) => sum + length, SMF_HEADER_LENGTH)
  header.writeUInt8(VERSION, 0)
  header.writeUInt8(message.protocol & 0x3f, 1)
  header.writeUInt8(message.timeToLive, 3)
  header.writeUInt32BE(headerLength, 4)
  header.writeUInt32BE(headerLength + body.length, 8)
  return Buffer.concat([header, ...parameters, body])
}

/** By type; the tag of correlation under its whole byte. Of a type that comes twice the last one counts. */
function decodeParameters(bytes: Buffer): Map<number, Buffer> {
  const values = new Map<number, Buffer>()
  let offset = 0
  while (offset < bytes.length) {
    const type = bytes.readUInt8(offset)
    if (type === 0) {
      offset += 1
    } else if ((type & LIGHTWEIGHT) !== 0) {
      const end = offset + 1 + (type & 0x03)
      if (end > bytes.length) throw new SmfSyntaxError('a parameter that is cut off')
      values.set(type & 0x3f, bytes.subarray(offset + 1, end))
      offset = end
    } else {
      const { from, end } = extent(bytes, offset)
      values.set(type & 0x1f, bytes.subarray(from, end))
      offset = end
    }
  }
  return values
}

/** Where the value of the standard parameter at `offset` begins and ends. */
function extent(bytes: Buffer, offset: number): { from: number; end: number } {
  const short = offset + 2 <= bytes.length ? bytes.readUInt8(offset + 1) : 1
  const prefix = short === 0 ? 6 : 2
  if (offset + prefix > bytes.length) throw new SmfSyntaxError('a parameter that is cut off')
  const length = short === 0 ? bytes.readUInt32BE(offset + 2) : short
  const end = offset + length
  if (length < prefix || end > bytes.length) throw new SmfSyntaxError(`a parameter of ${length} bytes`)
  return { from: offset + prefix, end }
}

function encodeParameter(type: number, value: Buffer): Buffer {
  if (value.length + 2 <= 0xff) return Buffer.concat([Buffer.from([type, value.length + 2]), value])
  const prefix = Buffer.alloc(6)
  prefix.writeUInt8(type, 0)
  prefix.writeUInt32BE(value.length + 6, 2)
  return Buffer.concat([prefix, value])
}

const encodeBase64 = (text: string): Buffer => Buffer.from(Buffer.from(text, 'latin1').toString('base64'), 'latin1')

function decodeBase64(value: Buffer | undefined): string | null {
  if (value === undefined) return null
  const encoded = value.toString('latin1')
  const bytes = Buffer.from(encoded, 'base64')
  // Node skips what is no base64, and would then compare another password than the one that was sent.
  if (bytes.toString('base64') !== encoded) throw new SmfSyntaxError('a value that is not base64')
  return bytes.toString('latin1')
}

function decodeResponse(value: Buffer | undefined): SmfResponse | null {
  if (value === undefined) return null
  if (value.length < 4) throw new SmfSyntaxError('a response without a code')
  return { code: value.readUInt32BE(0), text: value.toString('latin1', 4) }
}
