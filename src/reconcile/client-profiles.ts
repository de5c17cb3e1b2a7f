import type { BrokerObject } from '../domain/broker-object.ts'

/** What the clients of a registration need to be allowed on a broker. */
export interface Capabilities {
  readonly guaranteedSend: boolean
  readonly guaranteedReceive: boolean
  /** Clients create their own endpoints: MQTT sessions with guaranteed delivery do. */
  readonly endpointCreation: boolean
}

interface ClientProfile extends Capabilities {
  readonly name: string
  readonly transacted: boolean
}

/**
 * The fixed set: created once per message VPN, shared, never deleted by a registration. The documents hold the same
 * table, and a test compares the two.
 */
export const CLIENT_PROFILES: readonly ClientProfile[] = [
  profile('keymesh-direct', false, false, false),
  profile('keymesh-send', true, false, false),
  profile('keymesh-receive', false, true, false),
  profile('keymesh-receive-create', false, true, true),
  profile('keymesh-send-receive', true, true, false),
  profile('keymesh-send-receive-create', true, true, true),
]

function profile(name: string, guaranteedSend: boolean, guaranteedReceive: boolean, endpointCreation: boolean) {
  const transacted = guaranteedSend || guaranteedReceive
  return { name, guaranteedSend, guaranteedReceive, endpointCreation, transacted }
}

/** The profile that allows what is needed and no more. Endpoint creation without guaranteed receive means nothing. */
export function chooseClientProfile(needed: Capabilities): BrokerObject {
  const endpointCreation = needed.endpointCreation && needed.guaranteedReceive
  const found = CLIENT_PROFILES.find(
    (candidate) =>
      candidate.guaranteedSend === needed.guaranteedSend &&
      candidate.guaranteedReceive === needed.guaranteedReceive &&
      candidate.endpointCreation === endpointCreation,
  )
  if (found === undefined) throw new TypeError('the client profile table covers every combination')
  return {
    kind: 'clientProfile',
    name: found.name,
    attributes: {
      allowGuaranteedMsgSendEnabled: found.guaranteedSend,
      allowGuaranteedMsgReceiveEnabled: found.guaranteedReceive,
      allowGuaranteedEndpointCreateEnabled: found.endpointCreation,
      allowTransactedSessionsEnabled: found.transacted,
      allowBridgeConnectionsEnabled: false,
    },
    members: {},
  }
}
