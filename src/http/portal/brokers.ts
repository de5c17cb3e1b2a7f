import { z } from 'zod'
import {
  DEFAULT_BROKER_POLICY,
  DEFAULT_LOGIN_SETTINGS,
  type ManagementSettings,
  type MessagingSettings,
  PROTOCOLS,
} from '../../domain/catalogue.ts'
import { InvalidInputError } from '../../domain/errors.ts'
import { brokerId } from '../../domain/ids.ts'
import { msgVpnNameProblem } from '../../domain/names.ts'
import type { PortalBroker } from '../../domain/portal-file.ts'
import { Secret } from '../../domain/secret.ts'
import { certificateProblem } from '../../portal-file/parse-portal-file.ts'
import { normaliseUrl } from '../../portal-file/portal-file-references.ts'
import {
  loginsAtATime,
  loginsOff,
  loginsPerSecond,
  longText,
  managementUrl,
  managementUsername,
  messagingHost,
  port,
  text,
} from '../../portal-file/portal-file-schema.ts'
import type { StoredBroker } from '../../store/import-state.ts'
import type { StoredCatalogue } from '../../store/portal-change.ts'
import { brokerRevision } from '../../store/portal-revisions.ts'
import { viewBrokers } from '../../store/portal-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import {
  fromPolicyBody,
  policyChangeSchema,
  policySchema,
  toPolicyBody,
  WINDOW_MISSING,
} from '../operations/policy-schema.ts'
import { BROKERS } from './access.ts'
import { type Collection, collectionRoutes } from './portal-collection.ts'
import { name, newId, reference } from './portal-schemas.ts'

const certificate = longText(1024 * 1024)
  .superRefine((pem, context) => {
    const problem = certificateProblem(pem)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })
  .describe('PEM certificates that the one of the broker must chain to.')

const managementFields = {
  url: managementUrl,
  msgVpnName: text(msgVpnNameProblem),
  username: managementUsername,
  caCertificate: certificate.optional(),
  maxConcurrentRequests: z.int().min(1).max(50).default(4),
  maxRequestsPerSecond: z.number().positive().max(1000).optional(),
  requestTimeoutMs: z.int().min(100).max(600_000).default(30_000),
}
const management = z.strictObject({
  ...managementFields,
  password: longText(512)
    .min(1)
    .optional()
    .describe('Written, never shown. Left out, the stored one stays as long as the address does.'),
})
const messaging = z.strictObject({
  host: messagingHost,
  protocols: z
    .array(z.strictObject({ protocol: z.enum(PROTOCOLS), port }))
    .max(PROTOCOLS.length)
    .superRefine((list, context) => {
      for (const [index, { protocol }] of list.entries()) {
        if (list.findIndex((other) => other.protocol === protocol) === index) continue
        context.addIssue({ code: 'custom', path: [index, 'protocol'], message: 'is in the list already' })
      }
    }),
  caCertificate: certificate.optional(),
  logins: z
    .strictObject({
      off: loginsOff.default([]).describe('Protocols that are not logged in over; `all`: none is.'),
      maxPerSecond: loginsPerSecond.default(DEFAULT_LOGIN_SETTINGS.maxPerSecond),
      maxConcurrent: loginsAtATime.default(DEFAULT_LOGIN_SETTINGS.maxConcurrent),
    })
    .optional()
    .describe('How credentials are proved by logging in; left out, over every protocol at the usual pace.'),
})

const create = z.strictObject({
  id: newId.optional(),
  name: name.optional(),
  eventMeshId: reference.nullable().default(null),
  management: management.nullable().default(null),
  messaging: messaging.nullable().default(null),
  policy: policyChangeSchema.default({}),
})
const change = z.strictObject({
  name: name.optional(),
  eventMeshId: reference.nullable().optional(),
  management: management.nullable().optional(),
  messaging: messaging.nullable().optional(),
  policy: policyChangeSchema.optional(),
})
const shown = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    kind: z.literal('solace'),
    eventMeshId: z.string().nullable(),
    management: z
      .strictObject({
        url: z.string(),
        msgVpnName: z.string(),
        username: z.string(),
        caCertificate: z.string().optional(),
        maxConcurrentRequests: z.int(),
        maxRequestsPerSecond: z.number().optional(),
        requestTimeoutMs: z.int(),
      })
      .readonly()
      .nullable()
      .describe('Null while address, message VPN, username and password are not all there.'),
    messaging: z
      .strictObject({
        host: z.string(),
        protocols: z.array(z.strictObject({ protocol: z.enum(PROTOCOLS), port: z.int() }).readonly()).readonly(),
        caCertificate: z.string().optional(),
        logins: z
          .strictObject({
            off: z.union([z.literal('all'), z.array(z.enum(PROTOCOLS)).readonly()]),
            maxPerSecond: z.number(),
            maxConcurrent: z.int(),
          })
          .readonly()
          .optional(),
      })
      .readonly()
      .nullable(),
    policy: policySchema,
  })
  .meta({ id: 'PortalBroker' })

type ManagementBody = z.output<typeof management>
type PolicyChange = z.output<typeof policyChangeSchema>

const brokers: Collection<StoredBroker, z.output<typeof shown>, z.output<typeof create>, z.output<typeof change>> = {
  segment: 'brokers',
  kind: 'broker',
  words: 'broker',
  access: BROKERS,
  schemas: { shown, create, change },
  view: viewBrokers,
  show: ({ id, name, kind, eventMeshId, management, messaging, policy }) => ({
    id,
    name,
    kind,
    eventMeshId,
    management,
    messaging,
    policy: toPolicyBody(policy),
  }),
  revision: brokerRevision,
  storedIn: (state) => state.brokers,
  build: (body, id) => {
    const { password } = body.management ?? {}
    if (body.management !== null && password === undefined) {
      throw refused('management.password', 'must be given')
    }
    return {
      brokers: [
        {
          id: brokerId(id),
          name: body.name ?? id,
          kind: 'solace',
          eventMeshId: body.eventMeshId,
          management: body.management === null ? null : toManagement(body.management),
          managementPassword: password === undefined ? null : new Secret(password),
          messaging: body.messaging === null ? null : toMessaging(body.messaging),
          policy: changedPolicy(DEFAULT_BROKER_POLICY, body.policy),
        },
      ],
    }
  },
  change: async (stored, body, catalogue) => ({ brokers: [await changedBroker(stored, body, catalogue)] }),
}

async function changedBroker(
  stored: StoredBroker,
  body: z.output<typeof change>,
  catalogue: StoredCatalogue,
): Promise<PortalBroker> {
  const wanted = body.management === undefined ? stored.management : body.management && toManagement(body.management)
  const password = body.management?.password
  const managementPassword =
    wanted === null
      ? null
      : password === undefined
        ? await keptPassword(stored, wanted, catalogue)
        : new Secret(password)
  return {
    id: brokerId(stored.id),
    name: body.name ?? stored.name,
    kind: stored.kind,
    eventMeshId: body.eventMeshId === undefined ? stored.eventMeshId : body.eventMeshId,
    management: wanted,
    managementPassword,
    messaging: body.messaging === undefined ? stored.messaging : body.messaging && toMessaging(body.messaging),
    policy: body.policy === undefined ? stored.policy : changedPolicy(stored.policy, body.policy),
  }
}

/** A stored password is sent nowhere but where it was meant for: who names another address names the password too. */
async function keptPassword(
  stored: StoredBroker,
  wanted: ManagementSettings,
  { brokerPassword }: StoredCatalogue,
): Promise<Secret> {
  const kept = await brokerPassword(stored.id)
  if (kept === null) throw refused('management.password', 'must be given')
  const { management } = stored
  if (management?.url !== wanted.url || management.username !== wanted.username) {
    throw refused('management.password', 'must be given with another url or username')
  }
  if (management.caCertificate !== wanted.caCertificate) {
    throw refused('management.password', 'must be given with another caCertificate')
  }
  return kept
}

const refused = (path: string, message: string): InvalidInputError =>
  new InvalidInputError('The request', [{ path, message }])

function toManagement({ password: _password, url, caCertificate, maxRequestsPerSecond, ...rest }: ManagementBody) {
  return {
    ...rest,
    url: normaliseUrl(url),
    ...(maxRequestsPerSecond === undefined ? {} : { maxRequestsPerSecond }),
    ...(caCertificate === undefined ? {} : { caCertificate }),
  } satisfies ManagementSettings
}

function toMessaging({ host, protocols, caCertificate, logins }: z.output<typeof messaging>): MessagingSettings {
  const inOrder = PROTOCOLS.flatMap((protocol) => protocols.filter((each) => each.protocol === protocol))
  return {
    host,
    protocols: inOrder,
    ...(caCertificate === undefined ? {} : { caCertificate }),
    ...(logins === undefined ? {} : { logins }),
  }
}

function changedPolicy(policy: StoredBroker['policy'], body: PolicyChange) {
  const wanted = { ...toPolicyBody(policy), ...body }
  if (wanted.disruptive === 'window' && wanted.window === null) {
    throw refused(`policy.${WINDOW_MISSING.path}`, WINDOW_MISSING.message)
  }
  return fromPolicyBody(wanted)
}

export async function brokerRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  collectionRoutes(app, dependencies, brokers)
}
