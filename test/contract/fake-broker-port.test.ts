import { FakeBroker } from '../helpers/fake-broker.ts'
import { brokerPortContract } from './broker-port-contract.ts'

brokerPortContract('the fake broker', async () => {
  const port = new FakeBroker()
  return {
    port,
    removeMsgVpn: () => {
      port.msgVpnMissing = true
    },
    passwordOf: (clientUsername) => port.passwords.get(clientUsername),
    setQueuedMessages: (queueName, count) => void port.messages.set(queueName, count),
    writes: () => port.writes.length,
    [Symbol.asyncDispose]: () => port.close(),
  }
})
