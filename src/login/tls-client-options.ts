import { isIP } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { LoginTarget } from '../reconcile/login-port.ts'

/**
 * Checks the chain against the target's certificates, or the system's, and the name against the host. An IP address is
 * no server name to send (RFC 6066, 3); without one the address itself is looked for in the certificate.
 */
export const tlsClientOptions = ({ host, caCertificate }: LoginTarget): ConnectionOptions => ({
  servername: isIP(host) === 0 ? host : '',
  ...(caCertificate === undefined ? {} : { ca: caCertificate }),
})
