import { connectAsync, type IClientOptions, type MqttClient } from 'mqtt'
import type { IConnectPacket } from 'mqtt-packet'
import type { AccountTable } from '../../src/sandbox/account-table.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts'
import { SempTestClient, type Step } from '../unit/sandbox-client.ts'
import { MqttRawClient } from './mqtt-raw-client.ts'

const PASSWORD = 'a good password'
/** Protocols as the broker names them, and as the client does. */
export const TRANSPORTS = { mqtt: 'mqtt', 'secure-mqtt': 'mqtts', mqttws: 'ws', 'secure-mqttws': 'wss' } as const
export type Transport = keyof typeof TRANSPORTS

export const exceptions = (kind: 'publish' | 'subscribe', topics: readonly string[]): readonly Step[] =>
  topics.map((topic) => [
    'POST',
    `aclProfiles/orders/${kind}TopicExceptions`,
    { [`${kind}TopicException`]: topic, [`${kind}TopicExceptionSyntax`]: 'smf' },
  ])

/** What is derived for an application: a level of a parameter, a prefix of one, several values, and nothing else. */
const SETUP: readonly Step[] = [
  ['POST', 'aclProfiles', { aclProfileName: 'orders', clientConnectDefaultAction: 'allow' }],
  ...exceptions('publish', ['orders/eu/placed', 'orders/*/paid', 'orders/eu/item-*/counted']),
  ...exceptions('subscribe', ['orders/*/placed', 'orders/eu/item-*/counted', 'orders/us/paid', 'orders/eu/paid']),
  [
    'POST',
    'aclProfiles',
    {
      aclProfileName: 'all',
      clientConnectDefaultAction: 'allow',
      publishTopicDefaultAction: 'allow',
      subscribeTopicDefaultAction: 'allow',
    },
  ],
  ['POST', 'aclProfiles', { aclProfileName: 'none' }],
  ['POST', 'clientProfiles', { clientProfileName: 'one', maxConnectionCountPerClientUsername: 1 }],
  ['POST', 'clientUsernames', { clientUsername: 'app', password: PASSWORD, enabled: true, aclProfileName: 'orders' }],
  ['POST', 'clientUsernames', { clientUsername: 'ops', password: PASSWORD, enabled: true, aclProfileName: 'all' }],
  ['POST', 'clientUsernames', { clientUsername: 'off', password: PASSWORD, enabled: false, aclProfileName: 'all' }],
  [
    'POST',
    'clientUsernames',
    { clientUsername: 'shut-out', password: PASSWORD, enabled: true, aclProfileName: 'none' },
  ],
  [
    'POST',
    'clientUsernames',
    { clientUsername: 'single', password: PASSWORD, enabled: true, aclProfileName: 'all', clientProfileName: 'one' },
  ],
]

interface Received {
  readonly topic: string
  readonly text: string
  readonly qos: number
}

export interface TestClient {
  readonly mqtt: MqttClient
  readonly messages: Received[]
  /** The reason codes of DISCONNECT packets of MQTT 5. */
  readonly reasons: (number | undefined)[]
}

/**
 * A simulated broker with every MQTT port. Its client usernames: `app` with an ACL profile as it is derived, `ops` that
 * may do all, `off` that is shut down, `shut-out` that may not connect, `single` that may connect once.
 */
export class MqttPlace implements AsyncDisposable {
  readonly #sandbox: Sandbox
  readonly #semp: SempTestClient
  readonly #clients: MqttClient[] = []

  private constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
    this.#semp = new SempTestClient(sandbox.broker())
  }

  static async start(): Promise<MqttPlace> {
    const logins = { mqtt: 0, 'secure-mqtt': 0, mqttws: 0, 'secure-mqttws': 0 }
    const place = new MqttPlace(await startSandbox({ brokers: [{ logins }] }))
    await place.send(...SETUP)
    return place
  }

  get accounts(): AccountTable {
    return this.#sandbox.broker().state.accounts
  }

  get caCertificate(): string {
    return this.#sandbox.broker().caCertificate
  }

  port(transport: Transport = 'mqtt'): number {
    const endpoint = this.#sandbox.broker().endpoints.find(({ protocol }) => protocol === transport)
    if (endpoint === undefined) throw new Error('expected a port')
    return endpoint.port
  }

  /** Changes the broker as an administrator does. */
  async send(...steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      const { httpStatus, description } = await this.#semp.send(step)
      if (httpStatus !== 200) throw new Error(`${step[0]} ${step[1]}: ${description}`)
    }
  }

  /** A client that is connected; rejects when the broker refuses it. */
  async join(username: string, options: IClientOptions & { readonly transport?: Transport } = {}): Promise<TestClient> {
    const { transport = 'mqtt', ...rest } = options
    const mqtt = await connectAsync(
      `${TRANSPORTS[transport]}://localhost:${this.port(transport)}`,
      { username, password: PASSWORD, reconnectPeriod: 0, ca: this.caCertificate, ...rest },
      false,
    )
    this.#clients.push(mqtt)
    mqtt.on('error', () => {})
    const messages: Received[] = []
    const reasons: (number | undefined)[] = []
    mqtt.on('message', (topic, payload, { qos }) => messages.push({ topic, text: payload.toString(), qos }))
    mqtt.on('disconnect', ({ reasonCode }) => reasons.push(reasonCode))
    return { mqtt, messages, reasons }
  }

  /** One that has said CONNECT and nothing else. */
  async joinRaw(protocolVersion: 4 | 5, change: Partial<IConnectPacket> = {}): Promise<MqttRawClient> {
    const client = await MqttRawClient.open(this.port(), protocolVersion)
    client.send(connectPacket(protocolVersion, change))
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.endAsync(true)))
    await this.#sandbox.close()
  }
}

/** The granted QoS, or the code of the refusal. */
export function subscribe(
  { mqtt }: TestClient,
  filter: string,
  options: { qos?: 0 | 1 | 2; nl?: boolean } = {},
): Promise<number> {
  return new Promise((resolve) => {
    mqtt.subscribe(filter, { qos: 1, ...options }, (_error, _granted, packet) => resolve(Number(packet?.granted[0])))
  })
}

export const topicsOf = ({ messages }: TestClient): string[] => messages.map(({ topic }) => topic)

export const connectPacket = (protocolVersion: 4 | 5, change: Partial<IConnectPacket> = {}): IConnectPacket => ({
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion,
  clientId: `raw${Math.random()}`,
  clean: true,
  keepalive: 0,
  username: 'ops',
  password: Buffer.from(PASSWORD),
  ...change,
})
