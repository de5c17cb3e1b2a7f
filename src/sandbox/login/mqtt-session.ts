import type { Duplex } from 'node:stream'
import type { IConnectPacket, IPublishPacket, ISubscribePacket, IUnsubscribePacket, Packet } from 'mqtt-packet'
import type { ConnectedClient } from '../account-table.ts'
import { type ClientIdHolder, clientIdsOf } from './mqtt-client-ids.ts'
import { type ConnectRequest, readConnect } from './mqtt-connect.ts'
import { type MqttMessage, messageOf, publishProblem } from './mqtt-message.ts'
import { MqttOutbox } from './mqtt-outbox.ts'
import { CONNECT_REFUSALS, type ConnectRefusal, IDENTIFIER_REJECTED, REASONS } from './mqtt-reasons.ts'
import { MqttSubscriptions, subscribeProblem } from './mqtt-subscriptions.ts'
import { type MqttLimits, MqttWire } from './mqtt-wire.ts'
import type { AccessOutcome, MsgVpnAccess } from './msg-vpn-access.ts'
import { type RoutedMessage, routerOf, type Subscriber } from './topic-router.ts'

interface Client {
  readonly id: string
  readonly username: string
  readonly account: ConnectedClient
  readonly outbox: MqttOutbox
  readonly subscriptions: MqttSubscriptions
  /** QoS 2 messages that are routed and whose PUBREL is awaited. */
  readonly received: Set<number>
  will: MqttMessage | null
}

/**
 * One MQTT client, 3.1.1 or 5, from its connection to its end. Sessions do not outlive connections and messages are not
 * retained. Publishing where the ACL profile denies it is answered by the acknowledgement of MQTT 5; what has none that
 * could say so (QoS 0, all of 3.1.1) costs the connection, so that no client takes a denied message for a sent one.
 */
export class MqttSession implements Subscriber, ClientIdHolder {
  readonly #msgVpn: MsgVpnAccess
  readonly #limits: MqttLimits
  readonly #wire: MqttWire
  #client: Client | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Duplex, msgVpn: MsgVpnAccess, limits: MqttLimits) {
    this.#msgVpn = msgVpn
    this.#limits = limits
    this.#wire = new MqttWire(stream, limits, {
      onPacket: (packet) => this.#take(packet),
      onMalformed: () => this.#end(REASONS.malformedPacket),
      onTooLarge: () => this.#end(REASONS.packetTooLarge),
      onClose: () => this.#leave(),
    })
    this.#timer = setTimeout(() => this.#end(REASONS.protocolError), limits.connectTimeoutMs)
  }

  get clientUsername(): string {
    return this.#client?.username ?? ''
  }

  takeOver(): void {
    this.#end(REASONS.sessionTakenOver)
  }

  deliver(message: RoutedMessage): boolean {
    const client = this.#client
    const qos = client?.subscriptions.qosFor(message.topic, message.publisher === this) ?? null
    if (client === null || qos === null) return false
    if (!client.outbox.put(message, message.guaranteed ? qos : 0)) this.#end(REASONS.quotaExceeded)
    return true
  }

  #take(packet: Packet): void {
    const client = this.#client
    if (client === null) {
      if (packet.cmd === 'connect') this.#connect(packet)
      else this.#end(REASONS.protocolError)
      return
    }
    this.#timer?.refresh()
    switch (packet.cmd) {
      case 'publish':
        this.#publish(packet, client)
        return
      case 'puback':
        client.outbox.acknowledge(packet.messageId ?? 0)
        return
      case 'pubrel': {
        const isKnown = client.received.delete(packet.messageId ?? 0)
        this.#acknowledge('pubcomp', packet, isKnown ? REASONS.success : REASONS.packetIdNotFound)
        return
      }
      case 'subscribe':
        this.#subscribe(packet, client)
        return
      case 'unsubscribe':
        this.#unsubscribe(packet, client)
        return
      case 'pingreq':
        this.#wire.send({ cmd: 'pingresp' })
        return
      case 'disconnect':
        if (packet.reasonCode !== REASONS.disconnectWithWill) client.will = null
        this.#leave()
        this.#wire.end()
        return
      default:
        this.#end(REASONS.protocolError)
    }
  }

  #connect(packet: IConnectPacket): void {
    if (packet.protocolVersion === 5) this.#wire.protocolVersion = 5
    const reading = readConnect(packet)
    if (!reading.ok) {
      this.#refuse(reading.refusal)
      return
    }
    const { request } = reading
    const outcome = this.#login(request)
    if (outcome !== 'accepted') {
      this.#refuse(CONNECT_REFUSALS[outcome])
      return
    }
    const holder = clientIdsOf(this.#msgVpn).get(request.clientId)
    if (holder !== undefined && holder.clientUsername !== request.username) {
      this.#refuse(IDENTIFIER_REJECTED)
      return
    }
    holder?.takeOver()
    this.#enter(request)
  }

  /** A client that comes again by its id does not stand in its own way where connections are limited. */
  #login({ clientId, username, password }: ConnectRequest): AccessOutcome {
    const outcome = this.#msgVpn.login(username, password)
    const holder = clientIdsOf(this.#msgVpn).get(clientId)
    if (outcome !== 'too-many-connections' || holder?.clientUsername !== username) return outcome
    holder.takeOver()
    return this.#msgVpn.login(username, password)
  }

  #enter(request: ConnectRequest): void {
    const { clientId, username, silenceMs, will } = request
    const isAllowed = (filter: string) => this.#msgVpn.allows(username, 'subscribe', filter)
    this.#client = {
      id: clientId,
      username,
      account: this.#msgVpn.connect(username, () => this.#drop()),
      outbox: new MqttOutbox(this.#wire, request),
      subscriptions: new MqttSubscriptions(this.#wire.protocolVersion, isAllowed),
      received: new Set(),
      will,
    }
    clientIdsOf(this.#msgVpn).set(clientId, this)
    routerOf(this.#msgVpn).join(this)
    clearTimeout(this.#timer)
    this.#timer = silenceMs === null ? undefined : setTimeout(() => this.#end(REASONS.keepAliveTimeout), silenceMs)
    this.#wire.send({
      cmd: 'connack',
      sessionPresent: false,
      returnCode: 0,
      reasonCode: REASONS.success,
      properties: {
        ...(request.isIdAssigned ? { assignedClientIdentifier: clientId } : {}),
        sessionExpiryInterval: 0,
        maximumPacketSize: this.#limits.maxPacketBytes,
        retainAvailable: false,
        subscriptionIdentifiersAvailable: false,
        sharedSubscriptionAvailable: false,
      },
    })
  }

  #refuse({ returnCode, reasonCode }: ConnectRefusal): void {
    this.#wire.send({ cmd: 'connack', sessionPresent: false, returnCode, reasonCode })
    this.#leave()
    this.#wire.end()
  }

  #publish(packet: IPublishPacket, client: Client): void {
    const { qos, messageId = 0 } = packet
    const acknowledge = (reasonCode: number): void => {
      if (qos > 0) this.#acknowledge(qos === 1 ? 'puback' : 'pubrec', packet, reasonCode)
    }
    const problem = publishProblem(packet, this.#wire.protocolVersion)
    if (problem !== null) {
      this.#end(problem)
    } else if (qos === 2 && client.received.has(messageId)) {
      acknowledge(REASONS.success)
    } else if (this.#msgVpn.allows(client.username, 'publish', packet.topic)) {
      if (qos === 2) client.received.add(messageId)
      const count = routerOf(this.#msgVpn).publish({ ...messageOf(packet), publisher: this })
      acknowledge(count === 0 ? REASONS.noMatchingSubscribers : REASONS.success)
    } else if (qos > 0 && this.#wire.protocolVersion === 5) {
      acknowledge(REASONS.notAuthorized)
    } else {
      this.#end(REASONS.notAuthorized)
    }
  }

  #acknowledge(cmd: 'puback' | 'pubrec' | 'pubcomp', { messageId = 0 }: Packet, reasonCode: number): void {
    this.#wire.send({ cmd, messageId, reasonCode })
  }

  #subscribe(packet: ISubscribePacket, { subscriptions }: Client): void {
    const problem = subscribeProblem(packet, this.#wire.protocolVersion)
    if (problem === null) {
      const granted = packet.subscriptions.map((subscription) => subscriptions.add(subscription))
      this.#wire.send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted })
    } else {
      this.#end(problem)
    }
  }

  #unsubscribe({ unsubscriptions, messageId = 0 }: IUnsubscribePacket, { subscriptions }: Client): void {
    if (messageId < 1 || unsubscriptions.length === 0) {
      this.#end(REASONS.protocolError)
      return
    }
    const granted = unsubscriptions.map((filter) =>
      subscriptions.remove(filter) ? REASONS.success : REASONS.noSubscriptionExisted,
    )
    this.#wire.send({ cmd: 'unsuback', messageId, granted })
  }

  /** The broker throws the client out; the account may be gone, so nothing is published in its name any more. */
  #drop(): void {
    if (this.#client !== null) this.#client.will = null
    this.#end(REASONS.administrativeAction)
  }

  /** From our side; a client of MQTT 5 that is connected hears why. */
  #end(reasonCode: number): void {
    if (this.#client !== null && this.#wire.protocolVersion === 5) this.#wire.send({ cmd: 'disconnect', reasonCode })
    this.#leave()
    this.#wire.end()
  }

  /** From the message VPN; the connection may still be there for a moment. */
  #leave(): void {
    clearTimeout(this.#timer)
    const client = this.#client
    if (client === null) return
    this.#client = null
    const ids = clientIdsOf(this.#msgVpn)
    if (ids.get(client.id) === this) ids.delete(client.id)
    const router = routerOf(this.#msgVpn)
    router.leave(this)
    this.#msgVpn.disconnect(client.account)
    const { will } = client
    if (will !== null && this.#msgVpn.allows(client.username, 'publish', will.topic)) {
      router.publish({ ...will, publisher: this })
    }
  }
}
