import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type ClientControl,
  decodeClientControl,
  decodeSubscription,
  encodeClientControl,
} from '../../src/sandbox/login/smf-control.ts'
import { SmfFramer } from '../../src/sandbox/login/smf-framer.ts'
import { decodeSmf, encodeSmf, type SmfMessage, SmfSyntaxError } from '../../src/sandbox/login/smf-message.ts'

/** Bytes in hexadecimal, with spaces wherever they help; texts in quotation marks. */
const bytes = (text: string): Buffer =>
  Buffer.concat(
    [...text.matchAll(/'([^']*)'|([0-9a-f]+)/g)].map(([, quoted, hex]) =>
      quoted === undefined ? Buffer.from(hex ?? '', 'hex') : Buffer.from(quoted, 'latin1'),
    ),
  )

const LOGIN = bytes(`
  03 0c 00 01  00 00 00 1c  00 00 00 3d
  06 06 'YW5u'  07 0a 'cHctMQ=='
  01 00  00 00 00 21
  00 00 00 00 07 '1' 00
  86 00 00 00 0b 'north' 00
  18 00 00 00 09 00 00 00 03
`)
const ACCEPTED = bytes(`
  03 0c 00 01  00 00 00 14  00 00 00 28
  08 08 00 00 00 c8 'OK'
  01 00  00 00 00 14
  08 00 00 00 0e '#P2P/9/a' 00
`)
const REFUSED = bytes("03 0c 00 01  00 00 00 17  00 00 00 1d  08 0b 00 00 01 91 'Sorry'  01 00  00 00 00 06")
const SUBSCRIBE = bytes("03 0f 00 01  00 00 00 10  00 00 00 21  23 00 01 02  80 00 00 00 11 0c '#P2P/9/a/>' 00")
const KEEP_ALIVE = bytes('03 8b 00 02  00 00 00 0c  00 00 00 0c')

const NOTHING = { timeToLive: 1, correlationTag: null, username: null, password: null, response: null }
const NO_CONTROL: ClientControl = { messageType: 0, msgVpnName: null, inboxTopic: null, authenticationScheme: 0 }

describe('a message', () => {
  it('logs in', () => {
    const message = decodeSmf(LOGIN)
    expect(message).toMatchObject({ ...NOTHING, protocol: 0x0c, username: 'ann', password: 'pw-1' })
    expect(decodeClientControl(message.body)).toEqual({ ...NO_CONTROL, msgVpnName: 'north' })
  })

  it('accepts a login', () => {
    const body = encodeClientControl({ ...NO_CONTROL, inboxTopic: '#P2P/9/a' })
    expect(encodeSmf({ ...NOTHING, protocol: 0x0c, response: { code: 200, text: 'OK' }, body })).toEqual(ACCEPTED)
  })

  it('refuses a login', () => {
    const message = decodeSmf(REFUSED)
    expect(message.response).toEqual({ code: 401, text: 'Sorry' })
    expect(encodeSmf(message)).toEqual(REFUSED)
  })

  it('subscribes, with a tag for the answer', () => {
    const message = decodeSmf(SUBSCRIBE)
    expect(message).toMatchObject({ protocol: 0x0f, correlationTag: 0x000102 })
    expect(decodeSubscription(message.body)).toEqual({ kind: 'add', topic: '#P2P/9/a/>' })
    expect(encodeSmf(message)).toEqual(SUBSCRIBE)
  })

  it('keeps alive, whatever it asks to be done when it is not known', () => {
    expect(decodeSmf(KEEP_ALIVE)).toEqual({ ...NOTHING, protocol: 0x0b, timeToLive: 2, body: Buffer.alloc(0) })
  })

  const header = (parameters: string, body = ''): Buffer => {
    const [inner, rest] = [bytes(parameters), bytes(body)]
    const start = bytes('03 0c 00 01 00000000 00000000')
    start.writeUInt32BE(12 + inner.length, 4)
    start.writeUInt32BE(12 + inner.length + rest.length, 8)
    return Buffer.concat([start, inner, rest])
  }

  it.each([
    ['a long form of the length', "06 00 00 00 00 0a 'YW5u'"],
    ['other bits beside the type', "c6 06 'YW5u'"],
    ['padding', "00 00 06 06 'YW5u' 00"],
    ['parameters that nobody knows', "1e 03 ff  21 ff  20  2a ff ff  06 06 'YW5u'  40 02"],
  ])('is read with %s', (_sentence, parameters) => {
    expect(decodeSmf(header(parameters)).username).toBe('ann')
  })

  it('has characters of one byte in a username and password', () => {
    const password = String.fromCharCode(...Array.from({ length: 256 }, (_, code) => code))
    expect(decodeSmf(encodeSmf({ ...NOTHING, protocol: 0x0c, password, body: Buffer.alloc(0) })).password).toBe(
      password,
    )
  })

  const change = (message: Buffer, offset: number, value: number): Buffer => {
    const changed = Buffer.from(message)
    changed.writeUInt8(value, offset)
    return changed
  }

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['less than a header', LOGIN.subarray(0, 11)],
    ['another version', change(LOGIN, 0, 4)],
    ['a header that is longer than the message', change(LOGIN, 7, 0x3e)],
    ['a header that is shorter than a header', change(LOGIN, 7, 11)],
    ['more than the message', Buffer.concat([LOGIN, Buffer.alloc(1)])],
    ['less than the message', LOGIN.subarray(0, -1)],
    ['a parameter that ends behind the header', change(LOGIN, 19, 0x0b)],
    ['a parameter that is shorter than its length', change(LOGIN, 13, 1)],
    ['a parameter without a length', header('06')],
    ['a parameter without all of its long length', header('06 00 00 00')],
    ['a parameter with a long length that is too short', header('06 00 00 00 00 05')],
    ['a parameter with a long length that is too long', header('06 00 ff ff ff ff')],
    ['a tag that is cut off', header('23 00 00')],
    ['a username that is not base64', header("06 06 'YW*u'")],
    ['a username with half of its base64', header("06 05 'YW5'")],
    ['a password of base64 with something behind', header("07 07 'YW5u='")],
    ['a response without a code', header('08 05 00 00 01')],
  ])('is not %s', (_sentence, message) => {
    expect(() => decodeSmf(message)).toThrow(SmfSyntaxError)
  })

  it.each([
    ['nothing', ''],
    ['another version', '02 00 00000006'],
    ['a length that is too short', '01 00 00000005'],
    ['a length that is too long', '01 00 00000007'],
    ['a parameter that is cut off', '01 00 00000009 06 0000'],
    ['a parameter that is too short', '01 00 0000000b 06 00000004'],
    ['a parameter that is too long', "01 00 0000000c 06 00000007 'v'"],
  ])('is no client control with %s', (_sentence, text) => {
    expect(() => decodeClientControl(bytes(text))).toThrow(SmfSyntaxError)
  })

  it.each([
    ['nothing', ''],
    ['another length', "00 00000009 0c 'a' 00"],
    ['another kind', "02 00000008 0c 'a' 00"],
  ])('is no subscription with %s', (_sentence, text) => {
    expect(() => decodeSubscription(bytes(text))).toThrow(SmfSyntaxError)
  })

  it('may leave out the NUL of a text, and what is behind the body', () => {
    expect(decodeClientControl(bytes("01 01 0000000d 06 00000007 'vp' ffff"))).toEqual({
      ...NO_CONTROL,
      messageType: 1,
      msgVpnName: 'vp',
    })
    expect(decodeSubscription(bytes("01 00000007 0c 'a'"))).toEqual({ kind: 'remove', topic: 'a' })
  })
})

const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
const orNull = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const message: fc.Arbitrary<SmfMessage> = fc.record({
  protocol: fc.nat({ max: 63 }),
  timeToLive: fc.nat({ max: 255 }),
  correlationTag: orNull(fc.nat({ max: 0xffffff })),
  username: orNull(latin1),
  password: orNull(
    fc.oneof(
      latin1,
      latin1.map((text) => text.repeat(30)),
    ),
  ),
  response: orNull(fc.record({ code: fc.nat({ max: 0xffffffff }), text: latin1 })),
  body: fc.uint8Array({ maxLength: 50 }).map((array) => Buffer.from(array)),
})
const controlText = orNull(fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0') && text.isWellFormed()))
const control: fc.Arbitrary<ClientControl> = fc.record({
  messageType: fc.nat({ max: 255 }),
  msgVpnName: controlText,
  inboxTopic: controlText,
  authenticationScheme: fc.nat({ max: 255 }),
})
const junk = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array))
/** A good message with some of its bytes replaced. */
const mutated = fc
  .tuple(
    fc.constantFrom(LOGIN, ACCEPTED, REFUSED, SUBSCRIBE, KEEP_ALIVE),
    fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 }),
  )
  .map(([original, changes]) => {
    const changed = Buffer.from(original)
    for (const [offset, value] of changes) changed[offset % changed.length] = value
    return changed
  })

describe('whatever comes', () => {
  it('is what was sent', () => {
    fc.assert(fc.property(message, (sent) => void expect(decodeSmf(encodeSmf(sent))).toEqual(sent)))
    fc.assert(fc.property(control, (sent) => void expect(decodeClientControl(encodeClientControl(sent))).toEqual(sent)))
  })

  it('is a message or a syntax error', () => {
    const decodeAll = (bytes: Buffer) => {
      const { body } = decodeSmf(bytes)
      for (const decode of [decodeClientControl, decodeSubscription]) onlySyntaxErrors(() => decode(body))
    }
    fc.assert(
      fc.property(fc.oneof(junk, mutated), (bytes) => onlySyntaxErrors(() => decodeAll(bytes))),
      { numRuns: 2000 },
    )
    for (const decode of [decodeClientControl, decodeSubscription]) {
      fc.assert(fc.property(junk, (bytes) => onlySyntaxErrors(() => decode(bytes))))
    }
  })

  it('is cut into the same messages, in whatever pieces it comes', () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), pieces, (messages, lengths) => {
        const stream = Buffer.concat(messages.map(encodeSmf))
        const framer = new SmfFramer()
        const found: Buffer[] = []
        for (let offset = 0, turn = 0; offset < stream.length; turn += 1) {
          const length = lengths[turn % lengths.length] ?? 1
          found.push(...framer.push(stream.subarray(offset, offset + length), 65_536))
          offset += length
        }
        expect(found.map(decodeSmf)).toEqual(messages)
      }),
    )
  })

  it('is refused by its header when it will be too long', () => {
    const framer = new SmfFramer()
    expect(framer.push(bytes('03 0c 00 01 0000000c 000003'), 1024)).toEqual([])
    expect(() => framer.push(bytes('e9'), 1000)).toThrow(SmfSyntaxError)
    expect(new SmfFramer().push(bytes('03 0c 00 01 0000000c 000003e8'), 1000)).toEqual([])
  })
})

function onlySyntaxErrors(run: () => unknown): void {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(SmfSyntaxError)
  }
}
