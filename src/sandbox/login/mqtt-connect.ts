import { randomBytes } from 'node:crypto'
import type { IConnectPacket } from 'mqtt-packet'
import { type MqttMessage, messageProperties } from './mqtt-message.ts'
import { type ConnectRefusal, IDENTIFIER_REJECTED, REASONS } from './mqtt-reasons.ts'
import { isTopicName } from './mqtt-topics.ts'

/** A client is given up after one and a half times its keep-alive interval (MQTT 3.1.1, 3.1.2.10). */
const KEEP_ALIVE_FACTOR = 1.5

export interface ConnectRequest {
  readonly clientId: string
  /** The client left it to us. */
  readonly isIdAssigned: boolean
  readonly username: string
  readonly password: string
  /** How long the client may be silent; null for as long as it likes. */
  readonly silenceMs: number | null
  readonly receiveMaximum: number
  readonly maximumPacketSize: number
  readonly will: MqttMessage | null
}

export type ConnectReading =
  | { readonly ok: true; readonly request: ConnectRequest }
  | { readonly ok: false; readonly refusal: ConnectRefusal }

/** What a CONNECT packet asks for; not yet whether the client may. */
export function readConnect(packet: IConnectPacket): ConnectReading {
  const { protocolVersion, properties = {}, will, keepalive = 0 } = packet
  if (protocolVersion !== 4 && protocolVersion !== 5) return refused({ returnCode: 1, reasonCode: 0x84 })
  if (properties.authenticationMethod !== undefined) {
    return refused({ returnCode: 5, reasonCode: REASONS.badAuthenticationMethod })
  }
  const isIdAssigned = packet.clientId === ''
  // Without a clean session, a client must be found again by its id (MQTT 3.1.1, 3.1.3.1).
  if (isIdAssigned && protocolVersion === 4 && packet.clean !== true) return refused(IDENTIFIER_REJECTED)
  if (will !== undefined && !isTopicName(will.topic)) {
    return refused({ returnCode: 5, reasonCode: REASONS.topicNameInvalid })
  }
  if (will?.retain === true && protocolVersion === 5) {
    return refused({ returnCode: 5, reasonCode: REASONS.retainNotSupported })
  }
  return {
    ok: true,
    request: {
      clientId: isIdAssigned ? `auto-${randomBytes(8).toString('hex')}` : packet.clientId,
      isIdAssigned,
      username: packet.username ?? '',
      password: packet.password?.toString('utf8') ?? '',
      silenceMs: keepalive === 0 ? null : keepalive * 1000 * KEEP_ALIVE_FACTOR,
      receiveMaximum: properties.receiveMaximum ?? Number.POSITIVE_INFINITY,
      maximumPacketSize: properties.maximumPacketSize ?? Number.POSITIVE_INFINITY,
      will:
        will === undefined
          ? null
          : {
              topic: will.topic,
              payload: Buffer.from(will.payload),
              guaranteed: (will.qos ?? 0) > 0,
              properties: messageProperties(will.properties),
            },
    },
  }
}

const refused = (refusal: ConnectRefusal): ConnectReading => ({ ok: false, refusal })
