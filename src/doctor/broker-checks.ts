import { connect } from 'node:net'
import { createSolaceBroker } from '../brokers/solace/solace-broker.ts'
import { readUserAccess, type UserAccess } from '../brokers/solace/user-access.ts'
import { OBJECT_KINDS } from '../domain/broker-object.ts'
import type { ManagementSettings, MessagingSettings, Protocol } from '../domain/catalogue.ts'
import { codeOf, errorLine, KeymeshError } from '../domain/errors.ts'
import type { Secret } from '../domain/secret.ts'
import type { Verdict } from '../domain/verdict.ts'
import { networkFailure } from '../login/network-failure.ts'
import { tlsPreflight } from '../login/tls-preflight.ts'
import { CLIENT_PROFILES } from '../reconcile/client-profiles.ts'
import type { LoginTarget } from '../reconcile/login-port.ts'
import type { BrokerFacts, BrokerPort } from '../reconcile/ports.ts'
import { describeVerdict } from '../reconcile/verify.ts'
import { type Finding, failed, ok, problem, skipped, warning } from './finding.ts'

export interface CheckedBroker {
  /** As the findings name it. */
  readonly name: string
  readonly management: ManagementSettings
  readonly password: Secret
  readonly messaging: MessagingSettings | null
}

/** What the broker's management side is asked, one after the other: a step that fails leaves the next without an answer. */
const STEPS = ['reach', 'TLS', 'login', 'message VPN', 'authentication', 'SEMP version'] as const
type Step = (typeof STEPS)[number]

const STEP_OF_ERROR: Readonly<Record<string, Step>> = {
  BROKER_TLS_UNTRUSTED: 'TLS',
  INVALID_CA_CERTIFICATE: 'TLS',
  SEMP_LOGIN_REFUSED: 'login',
  UNAUTHORIZED_SCOPE: 'login',
  MSG_VPN_NOT_FOUND: 'message VPN',
}
const SCOPES = ['reading', 'writing', 'client profiles'] as const

/** Management, then every exposed protocol. Reads only. */
export async function checkBroker(broker: CheckedBroker, signal: AbortSignal): Promise<readonly Finding[]> {
  const [management, protocols] = await Promise.all([checkManagement(broker, signal), checkProtocols(broker, signal)])
  return [...management, ...protocols]
}

async function checkManagement(broker: CheckedBroker, signal: AbortSignal): Promise<readonly Finding[]> {
  const named = (part: string): string => `broker ${broker.name}: ${part}`
  let port: BrokerPort | null = null
  try {
    port = createSolaceBroker(broker.management, broker.password, { maxRepeats: 1 })
    const facts = await port.facts(signal, { fresh: true })
    return [...reached(broker, facts, named), ...(await checkScopes(broker, port, named, signal))]
  } catch (error) {
    const step = STEP_OF_ERROR[codeOf(error)] ?? 'reach'
    const at = STEPS.indexOf(step)
    return [
      ...STEPS.slice(0, at).map((each) => ok(named(each), PASSED[each] ?? '')),
      failed(named(step), error, 'Look at the management settings of the broker.'),
      ...[...STEPS.slice(at + 1), ...SCOPES].map((each) => skipped(named(each), `It waits for: ${step}.`)),
    ]
  } finally {
    await port?.close()
  }
}

const PASSED: Partial<Readonly<Record<Step, string>>> = {
  reach: 'The management address answers.',
  TLS: 'What was said of TLS was accepted.',
  login: 'The management user is let in.',
}

function reached(
  { management }: CheckedBroker,
  facts: BrokerFacts,
  named: (part: string) => string,
): readonly Finding[] {
  const { url, msgVpnName, username } = management
  const { sempVersion, requiresDisable, msgVpnEnabled, basicAuthentication: basic } = facts
  const authentication = named('authentication')
  return [
    ok(named('reach'), `${new URL(url).origin} answers.`),
    checkTls(url, named('TLS')),
    ok(named('login'), `The management user ${username} is let in.`),
    msgVpnEnabled
      ? ok(named('message VPN'), `${msgVpnName} is there and enabled.`)
      : problem(
          named('message VPN'),
          `${msgVpnName} is there and disabled: no client logs in.`,
          'Enable it on the broker.',
        ),
    basic.enabled && basic.type === 'internal'
      ? ok(authentication, 'Clients log in with the passwords of their client usernames (basic, internal).')
      : warning(
          authentication,
          basic.enabled
            ? `Basic authentication is done by ${basic.type}: the broker does not look at the passwords that Keymesh writes, and no login can be proved.`
            : 'Basic authentication is off: no client logs in with a password, and no login can be proved.',
          'Set basic authentication of the message VPN to internal, unless another authority is meant to decide.',
        ),
    requiresDisable
      ? warning(
          named('SEMP version'),
          `SEMP ${sempVersion}: some changes need the object disabled first, which drops its clients.`,
          'Bring the broker to a version later than SEMP 2.30; until then such changes wait for a person or a window.',
        )
      : ok(named('SEMP version'), `SEMP ${sempVersion}`),
  ]
}

function checkTls(url: string, check: string): Finding {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:') return ok(check, 'The certificate of the management address is trusted.')
  if (/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) {
    return ok(check, 'The management address is not encrypted, and on this host.')
  }
  return warning(
    check,
    'The management address is not encrypted: passwords travel in the clear.',
    'Use an https:// management URL, with caFile when a private authority signed its certificate.',
  )
}

async function checkScopes(
  { management, password }: CheckedBroker,
  port: BrokerPort,
  named: (part: string) => string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const reading = await checkReading(port, named('reading'), signal)
  const access = await readUserAccess(management, password, signal).catch((error: unknown) => error)
  const who = `The management user ${management.username}`
  if (!isAccess(access)) {
    const why = `Writing could not be looked at without doing it: the broker does not say what its user may do (${errorLine(access)}).`
    return [
      reading,
      skipped(named('writing'), why, 'The first run shows it: `keymesh reconcile` names what the user may not do.'),
      await checkProfiles(port, null, named('client profiles'), signal),
    ]
  }
  const mayWrite = access.msgVpn === 'read-write' || isWriter(access)
  return [
    reading,
    mayWrite
      ? ok(named('writing'), `${who} has ${access.msgVpn} access to the message VPN, and ${access.global} globally.`)
      : problem(
          named('writing'),
          `${who} has ${access.msgVpn} access to the message VPN, and ${access.global} globally: it may not write.`,
          `Give the user read-write access to the message VPN ${management.msgVpnName}; or set the policy of the broker to observe-only.`,
        ),
    await checkProfiles(port, access, named('client profiles'), signal),
  ]
}

/** The first page of each kind of object that Keymesh looks at. */
async function checkReading(port: BrokerPort, check: string, signal: AbortSignal): Promise<Finding> {
  try {
    for (const kind of OBJECT_KINDS) for await (const _page of port.list(kind, signal)) break
    return ok(check, `Objects of all ${OBJECT_KINDS.length} kinds can be read.`)
  } catch (error) {
    return failed(check, error, 'Give the management user at least read-only access to the message VPN.')
  }
}

/** They are shared, and need a global level to be created: levels between are not told, so what is there counts, too. */
async function checkProfiles(
  port: BrokerPort,
  access: UserAccess | null,
  check: string,
  signal: AbortSignal,
): Promise<Finding> {
  if (access !== null && isWriter(access)) return ok(check, `The user's global level ${access.global} is enough.`)
  try {
    const refs = CLIENT_PROFILES.map(({ name }) => ({ kind: 'clientProfile', name }) as const)
    const found = await Promise.all(refs.map(async (ref) => ({ ref, there: (await port.get(ref, signal)) !== null })))
    const missing = found.filter(({ there }) => !there).map(({ ref }) => ref.name)
    if (missing.length === 0) return ok(check, 'All client profiles of Keymesh are there.')
    return warning(
      check,
      `Whether the user may create client profiles cannot be known without trying; these are missing: ${missing.join(', ')}.`,
      'Give the user the global level mesh-manager (read-write before SEMP 2.31), or create those that are needed by hand, as docs/client-profiles.md says.',
    )
  } catch (error) {
    return failed(check, error, 'Give the management user read access to client profiles.')
  }
}

const isWriter = ({ global }: UserAccess): boolean => global === 'admin' || global === 'read-write'

const isAccess = (value: unknown): value is UserAccess =>
  !(value instanceof Error) && typeof value === 'object' && value !== null && 'global' in value

const OVER_TLS: ReadonlySet<Protocol> = new Set(['smfs', 'amqps', 'secure-mqtt', 'secure-mqttws', 'https'])

/** One connection to each, with a TLS handshake where there is TLS; nothing is sent, nobody logs in. */
async function checkProtocols(
  { name, management, messaging }: CheckedBroker,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (messaging === null || messaging.protocols.length === 0) {
    return [skipped(`broker ${name}: protocols`, 'No messaging settings: nothing is known of where clients log in.')]
  }
  const { host, protocols, caCertificate } = messaging
  return await Promise.all(
    protocols.map(async ({ protocol, port }) => {
      const target: LoginTarget = {
        protocol,
        host,
        port,
        msgVpnName: management.msgVpnName,
        ...(caCertificate === undefined ? {} : { caCertificate }),
      }
      const check = `broker ${name}: ${protocol}`
      const where = `${host}:${port}`
      const trouble = OVER_TLS.has(protocol) ? await tlsTrouble(target, signal) : await tcpTrouble(target, signal)
      if (trouble === null) return ok(check, `${where} accepts ${OVER_TLS.has(protocol) ? 'TLS' : 'connections'}.`)
      return problem(check, `${where}: ${trouble.says}`, trouble.isOfTls ? FIX_CERTIFICATE : FIX_ADDRESS)
    }),
  )
}

const FIX_ADDRESS =
  'Look at the messaging host and port of the broker, and at the network; take out a protocol that it does not expose.'
const FIX_CERTIFICATE =
  'Give the messaging settings the caFile of the authority that signed the certificate, or correct the certificate or the host.'

interface Trouble {
  readonly says: string
  readonly isOfTls: boolean
}

async function tlsTrouble(target: LoginTarget, signal: AbortSignal): Promise<Trouble | null> {
  const reached = await tlsPreflight(target, signal)
  return reached.passed ? null : troubleOf(reached.verdict)
}

function tcpTrouble({ host, port }: LoginTarget, signal: AbortSignal): Promise<Trouble | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal })
    socket.once('connect', () => {
      socket.destroy()
      resolve(null)
    })
    socket.once('error', (error) => resolve(troubleOf(networkFailure(error))))
  })
}

const troubleOf = (verdict: Verdict): Trouble =>
  verdict.outcome === 'not-verified'
    ? { says: verdict.detail, isOfTls: verdict.reason.startsWith('tls-') }
    : { says: describeVerdict(verdict), isOfTls: false }

/** The password of a broker could not be opened: nothing of it can be looked at. */
export function unopenedBroker(name: string, error: unknown): readonly Finding[] {
  const check = `broker ${name}: password`
  const fix = 'Put the key that sealed it back into the key ring, or import the broker with its password again.'
  return [
    failed(check, error instanceof KeymeshError ? error : new Error('it cannot be opened'), fix),
    ...[...STEPS, ...SCOPES].map((each) => skipped(`broker ${name}: ${each}`, 'It waits for: password.')),
  ]
}
