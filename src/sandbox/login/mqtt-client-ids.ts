import type { MsgVpnAccess } from './msg-vpn-access.ts'

export interface ClientIdHolder {
  readonly clientUsername: string
  /** Another connection with the same id takes its place. */
  takeOver(): void
}

/** Who is connected by which client id; ids are unique in a message VPN. */
export type ClientIds = Map<string, ClientIdHolder>

const registries = new WeakMap<MsgVpnAccess, ClientIds>()

/** The ids of all MQTT ports of a message VPN. */
export function clientIdsOf(msgVpn: MsgVpnAccess): ClientIds {
  let registry = registries.get(msgVpn)
  if (registry === undefined) {
    registry = new Map()
    registries.set(msgVpn, registry)
  }
  return registry
}
