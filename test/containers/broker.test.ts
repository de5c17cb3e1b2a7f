import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/domain/secret.ts'
import { brokerPortContract } from '../contract/broker-port-contract.ts'
import { type GivenBroker, newPrefix, objectsNamed, subjectOn } from '../contract/given-broker.ts'
import { imageCase } from '../helpers/containers.ts'

const SEMP_PORT = 8080
const HEALTH_PORT = 5550
/** A broker takes minutes on a slow machine. */
const STARTUP_MS = 300_000
/** What the image asks for. */
const SHARED_MEMORY_BYTES = 1024 ** 3
const PASSWORD = 'password-of-the-test'

const { image, skip } = await imageCase('broker')

describe.skipIf(skip)('a broker in a container', () => {
  const prefix = newPrefix()
  let broker: GivenBroker
  let stop = async (): Promise<unknown> => undefined
  beforeAll(async () => {
    const { GenericContainer, Wait } = await import('testcontainers')
    const container = await new GenericContainer(image)
      .withExposedPorts(SEMP_PORT, HEALTH_PORT)
      .withEnvironment({
        username_admin_globalaccesslevel: 'admin',
        username_admin_password: PASSWORD,
        system_scaling_maxconnectioncount: '100',
      })
      .withSharedMemorySize(SHARED_MEMORY_BYTES)
      .withUlimits({ core: { soft: -1, hard: -1 }, nofile: { soft: 2448, hard: 6592 } })
      .withWaitStrategy(Wait.forHttp('/health-check/guaranteed-active', HEALTH_PORT).forStatusCode(200))
      .withStartupTimeout(STARTUP_MS)
      .start()
    stop = () => container.stop()
    broker = {
      settings: {
        url: `http://${container.getHost()}:${container.getMappedPort(SEMP_PORT)}`,
        msgVpnName: 'default',
        username: 'admin',
        maxConcurrentRequests: 8,
        requestTimeoutMs: 30_000,
      },
      password: new Secret(PASSWORD),
      clientProfiles: true,
    }
  }, STARTUP_MS)
  afterAll(() => stop())

  brokerPortContract('the Solace adapter', () => subjectOn(broker), { prefix, simulated: false })

  it('is left without anything of this run', async () => {
    expect(await objectsNamed(broker, prefix)).toEqual([])
  })
})
