import type { Protocol } from '../../domain/catalogue.ts'
import type { MsgVpnAccess } from './msg-vpn-access.ts'

export interface TlsMaterial {
  /** PEM texts. */
  readonly key: string
  readonly cert: string
}

export interface ListenerOptions {
  readonly protocol: Protocol
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Null for the protocols in clear text. */
  readonly tls: TlsMaterial | null
  /** The message VPN that this port belongs to. */
  readonly msgVpn: MsgVpnAccess
  /** SMF names its message VPN at login; undefined when the broker has none of that name. */
  readonly msgVpnNamed: (name: string) => MsgVpnAccess | undefined
}

/** One open port for clients. */
export interface Listener {
  readonly protocol: Protocol
  readonly port: number
  /** Closes the port and every connection on it. */
  close(): Promise<void>
}

export type StartListener = (options: ListenerOptions) => Promise<Listener>
