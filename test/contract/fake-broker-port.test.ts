import { FakeBroker } from '../helpers/fake-broker.ts'
import { brokerPortContract } from './broker-port-contract.ts'

brokerPortContract('the fake broker', async () => {
  const port = new FakeBroker()
  return {
    port,
    hands: {
      removeMsgVpn: () => {
        port.msgVpnMissing = true
      },
      passwordOf: (clientUsername) => port.passwords.get(clientUsername),
      setQueuedMessages: (queueName, count) => void port.messages.set(queueName, count),
      limitConnections: (clientProfile, limit) => void port.connectionLimits.set(clientProfile, limit),
      connect: (clientUsername) =>
        void port.connected.set(clientUsername, (port.connected.get(clientUsername) ?? 0) + 1),
      writes: () => port.writes.length,
    },
    [Symbol.asyncDispose]: () => port.close(),
  }
})
