import type { IPublishPacket } from 'mqtt-packet'
import { REASONS } from './mqtt-reasons.ts'
import { isTopicName } from './mqtt-topics.ts'
import type { MessageProperties, RoutedMessage } from './topic-router.ts'

/** A message before it has a publisher. */
export type MqttMessage = Omit<RoutedMessage, 'publisher'>

type Properties = NonNullable<IPublishPacket['properties']>

/** The reason code that a PUBLISH ends its connection with, or null. */
export function publishProblem(packet: IPublishPacket, protocolVersion: 4 | 5): number | null {
  const { qos, topic, messageId = 0, properties = {} } = packet
  if (properties.topicAlias !== undefined) return REASONS.topicAliasInvalid
  if (!isTopicName(topic)) return REASONS.topicNameInvalid
  if (qos > 0 && messageId < 1) return REASONS.malformedPacket
  if (packet.retain && protocolVersion === 5) return REASONS.retainNotSupported
  // The parser makes a list of a property that comes twice, and only a broker sends ids of subscriptions.
  const isRepeated = Object.values(properties).some(Array.isArray)
  return isRepeated || properties.subscriptionIdentifier !== undefined ? REASONS.protocolError : null
}

export const messageOf = ({ topic, payload, qos, properties }: IPublishPacket): MqttMessage => ({
  topic,
  payload: Buffer.from(payload),
  guaranteed: qos > 0,
  properties: messageProperties(properties),
})

/** Those that the receivers get as they are (MQTT 5, 3.3.2.3). */
export function messageProperties(properties: Partial<Properties> = {}): MessageProperties {
  const { contentType, responseTopic, correlationData, payloadFormatIndicator, userProperties } = properties
  return {
    ...(contentType === undefined ? {} : { contentType }),
    ...(responseTopic === undefined ? {} : { responseTopic }),
    ...(correlationData === undefined ? {} : { correlationData }),
    ...(payloadFormatIndicator === undefined ? {} : { payloadFormatIndicator }),
    ...(userProperties === undefined ? {} : { userProperties }),
  }
}
