import { setTimeout as delay } from 'node:timers/promises'
import type { Protocol } from '../../src/domain/catalogue.ts'
import { Secret } from '../../src/domain/secret.ts'
import type { LoginAttempt, LoginTarget } from '../../src/reconcile/login-port.ts'
import { BrokerModel } from '../../src/sandbox/broker-model.ts'
import { type CertificateAuthority, createCertificateAuthority } from '../../src/sandbox/certificates.ts'
import type { Listener, StartListener, TlsMaterial } from '../../src/sandbox/login/listener.ts'
import { MsgVpnAccess } from '../../src/sandbox/login/msg-vpn-access.ts'
import { MsgVpnState } from '../../src/sandbox/msg-vpn-state.ts'
import { FULL_PAGES } from '../../src/sandbox/semp-paging.ts'

export const TIMEOUT_MS = 10_000
export const PASSWORD = 'corr3ct horse/battery:staple'
export const ALICE = 'alice@example'

export const attempt = (username: string, password: string): LoginAttempt => ({
  username,
  password: new Secret(password),
})
export const GOOD = attempt(ALICE, PASSWORD)

/** A message VPN with the client username `alice@example`, which may publish and connect. */
export interface LoginVpn {
  readonly access: MsgVpnAccess
  readonly state: MsgVpnState
}

export function loginVpn(): LoginVpn {
  const model = new BrokerModel({
    seed: 1,
    sempVersion: '2.49',
    msgVpnNames: ['sandbox'],
    msgVpnValues: {},
    sempScope: 'global',
    paging: FULL_PAGES,
  })
  const state = new MsgVpnState(model, 'sandbox')
  state.aclProfiles.put('open', {
    clientConnectDefaultAction: 'allow',
    publishTopicDefaultAction: 'allow',
    subscribeTopicDefaultAction: 'allow',
  })
  state.clientUsernames.put(ALICE, { enabled: true, aclProfileName: 'open', password: PASSWORD })
  return { access: new MsgVpnAccess(model, 'sandbox'), state }
}

export interface LoginPlace extends AsyncDisposable {
  readonly vpn: LoginVpn
  readonly listener: Listener
  target(change?: Partial<LoginTarget>): LoginTarget
}

/** A listener on a free port of this machine, and how to reach it. */
export async function startPlace(
  start: StartListener,
  {
    protocol,
    tls = null,
    ca,
  }: { readonly protocol: Protocol; readonly tls?: TlsMaterial | null; readonly ca?: string },
): Promise<LoginPlace> {
  const vpn = loginVpn()
  const listener = await start({
    protocol,
    host: '127.0.0.1',
    port: 0,
    tls,
    msgVpn: vpn.access,
    msgVpnNamed: (name) => (name === vpn.access.name ? vpn.access : undefined),
  })
  return {
    vpn,
    listener,
    target: (change = {}) => ({
      ...targetOf(protocol, listener.port),
      ...(ca ? { caCertificate: ca } : {}),
      ...change,
    }),
    [Symbol.asyncDispose]: () => listener.close(),
  }
}

export const targetOf = (protocol: Protocol, port: number): LoginTarget => ({
  protocol,
  host: 'localhost',
  port,
  msgVpnName: 'sandbox',
})

/** Waits until a condition holds, 5 seconds at most. */
export async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 5000
  while (!condition()) {
    if (Date.now() > end) throw new Error('the condition did not come true')
    await delay(5)
  }
}

export interface TlsMaterials {
  readonly ca: CertificateAuthority
  readonly good: TlsMaterial
  readonly expired: TlsMaterial
  readonly notYet: TlsMaterial
  readonly otherName: TlsMaterial
}

const DAY_MS = 86_400_000

export async function makeTlsMaterials(): Promise<TlsMaterials> {
  const ca = await createCertificateAuthority('keymesh login tests')
  const names = ['localhost', '127.0.0.1']
  const now = Date.now()
  const [good, expired, notYet, otherName] = await Promise.all([
    ca.issue({ names }),
    ca.issue({ names, notBefore: new Date(now - 2 * DAY_MS), notAfter: new Date(now - DAY_MS) }),
    ca.issue({ names, notBefore: new Date(now + DAY_MS), notAfter: new Date(now + 2 * DAY_MS) }),
    ca.issue({ names: ['broker.example'] }),
  ])
  return { ca, good, expired, notYet, otherName }
}
