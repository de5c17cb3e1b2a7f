import { z } from 'zod'
import {
  ADOPTIONS,
  DEFAULT_BROKER_POLICY,
  DEFAULT_LOGIN_SETTINGS,
  DISRUPTIVE_POLICIES,
  isProtocol,
  POLICY_MODES,
  PROTOCOLS,
} from '../domain/catalogue.ts'
import {
  catalogueIdProblem,
  consumerKeyProblem,
  consumerSecretProblem,
  externalIdProblem,
  hasUnsafeCharacters,
  msgVpnNameProblem,
  nameProblem,
} from '../domain/names.ts'
import { SEMANTIC_VERSION } from '../domain/semantic-version.ts'
import { filterValueProblem } from '../domain/topic-pattern.ts'

/** Text that a problem function of the domain judges. */
export const text = (problemOf: (value: string) => string | null) =>
  z.string().superRefine((value, context) => {
    const problem = problemOf(value)
    if (problem !== null) context.addIssue({ code: 'custom', message: problem })
  })

export const longText = (maxLength: number) =>
  text((value) => {
    if (value.length > maxLength) return `must be at most ${maxLength} characters long, it has ${value.length}`
    return value.includes('\u0000') || !value.isWellFormed() ? 'must not contain NUL or lone surrogates' : null
  })

export const catalogueId = text(catalogueIdProblem)
const externalId = text(externalIdProblem)
export const name = text(nameProblem)
export const description = longText(10_000).default('')
export const semanticVersion = z.string().regex(SEMANTIC_VERSION, 'must be a semantic version such as `1.2.0`')
/** The API bounds versions of Event APIs by length only. */
export const eventApiVersion = text((value) =>
  value.length < 2 || value.length > 64 || hasUnsafeCharacters(value) ? 'must be 2 to 64 characters long' : null,
)
const path = z.string().min(1, 'must be a path')
const environmentVariable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')
const timestamp = z.iso.datetime({
  offset: true,
  error: 'must be a time with its zone, such as `2030-01-31T00:00:00Z`',
})

/** Attributes are written as a map, as their names are unique. */
const attributes = z
  .record(z.string(), longText(10_000))
  .default({})
  .superRefine((record, context) => {
    if (Object.keys(record).length > 256) context.addIssue({ code: 'custom', message: 'has more than 256 attributes' })
    for (const key of Object.keys(record)) {
      if (!/^[a-zA-Z0-9_.-]{4,128}$/.test(key)) {
        const message = 'is no attribute name: 4 to 128 letters, digits, `_`, `-` and `.`'
        context.addIssue({ code: 'custom', path: [key], message })
      }
    }
  })

const filterValue = text(filterValueProblem)
/** Values by parameter name; a single value needs no list. */
export const filtersSchema = z
  .record(
    z.string(),
    z.preprocess(
      (value) => (typeof value === 'string' ? [value] : value),
      z.array(filterValue).min(1, 'needs at least one value').max(128, 'has more than 128 values'),
    ),
  )
  .default({})

export const managementUrl = text((value) => {
  const url = URL.canParse(value) ? new URL(value) : null
  if (url === null || !/^https?:$/.test(url.protocol)) return 'must be an http or https address'
  if (url.username !== '' || url.password !== '') return 'must not contain a username or a password'
  return url.search !== '' || url.hash !== '' ? 'must not have a query or a fragment' : null
})

export const managementUsername = text((value) =>
  /^[^:]{1,128}$/.test(value) && !hasUnsafeCharacters(value) ? null : 'must be 1 to 128 characters without `:`',
)

/** Every key may be missing: the broker is then unusable, which visibility explains. */
const management = z
  .strictObject({
    url: managementUrl.optional(),
    msgVpn: text(msgVpnNameProblem).optional(),
    username: managementUsername.optional(),
    password: longText(512).optional(),
    passwordEnv: environmentVariable.optional(),
    caFile: path.optional(),
    requestsPerSecond: z.number().positive().max(1000).optional(),
    concurrency: z.int().min(1).max(50).default(4),
    timeoutMs: z.int().min(100).max(600_000).default(30_000),
  })
  .superRefine((value, context) => {
    if (value.password !== undefined && value.passwordEnv !== undefined) {
      context.addIssue({ code: 'custom', path: ['passwordEnv'], message: 'stands beside `password`; give one of them' })
    }
  })

export const port = z.int().min(1).max(65_535)
export const messagingHost = text((value) =>
  /^[^\s/?#@]{1,253}$/.test(value) && !/^[^:]*:\d+$/.test(value) && !hasUnsafeCharacters(value)
    ? null
    : 'must be a host name or address without scheme and port',
)

/** Protocols that are not logged in over, in the order of the specification; `all` holds for later ones too. */
export const loginsOff = z
  .union([z.literal('all'), z.array(z.string())], { error: 'must be `all` or a list of protocols' })
  .superRefine((value, context) => {
    if (value === 'all') return
    for (const [index, name] of value.entries()) {
      if (!isProtocol(name)) {
        const message = `is no known protocol; known are ${PROTOCOLS.join(', ')}`
        context.addIssue({ code: 'custom', path: [index], message })
      } else if (value.indexOf(name) < index) {
        context.addIssue({ code: 'custom', path: [index], message: 'is in the list already' })
      }
    }
  })
  .transform((value) => (value === 'all' ? value : PROTOCOLS.filter((protocol) => value.includes(protocol))))
export const loginsPerSecond = z.number().positive().max(1000)
export const loginsAtATime = z.int().min(1).max(100)

const logins = z.strictObject({
  off: loginsOff.default([]),
  perSecond: loginsPerSecond.default(DEFAULT_LOGIN_SETTINGS.maxPerSecond),
  concurrency: loginsAtATime.default(DEFAULT_LOGIN_SETTINGS.maxConcurrent),
})
const messaging = z.strictObject({
  host: messagingHost.optional(),
  protocols: z
    .record(z.string(), port)
    .default({})
    .superRefine((record, context) => {
      for (const key of Object.keys(record)) {
        if (!isProtocol(key)) {
          const message = `is no known protocol; known are ${PROTOCOLS.join(', ')}`
          context.addIssue({ code: 'custom', path: [key], message })
        }
      }
    }),
  caFile: path.optional(),
  logins: logins.optional(),
})

const policy = z
  .strictObject({
    mode: z.enum(POLICY_MODES).default(DEFAULT_BROKER_POLICY.mode),
    adopt: z.enum(ADOPTIONS).default(DEFAULT_BROKER_POLICY.adopt),
    disruptive: z.enum(DISRUPTIVE_POLICIES).default(DEFAULT_BROKER_POLICY.disruptive),
    window: text((value) => {
      const times = /^(([01]\d|2[0-3]):[0-5]\d)-(([01]\d|2[0-3]):[0-5]\d)$/.exec(value)
      return times !== null && times[1] !== times[3]
        ? null
        : 'must be two different times in UTC, such as `02:00-04:00`'
    }).optional(),
    maxWithdrawals: z.int().min(0).default(DEFAULT_BROKER_POLICY.maxWithdrawals),
    maxWithdrawalsPercent: z.number().min(0).max(100).default(DEFAULT_BROKER_POLICY.maxWithdrawalsPercent),
    queuesWithMessages: z.enum(['keep', 'delete']).default(DEFAULT_BROKER_POLICY.queuesWithMessages),
    queuePermission: z.enum(['no-access', 'consume']).default(DEFAULT_BROKER_POLICY.queuePermission),
  })
  .superRefine((value, context) => {
    if (value.disruptive === 'window' && value.window === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['disruptive'],
        message: '`window` needs `window: "02:00-04:00"` beside it',
      })
    }
  })

/** Defaults of a queue are those that the APIM API documents. */
export const plan = z
  .strictObject({
    id: catalogueId,
    name,
    messageDeliveryMode: z.enum(['direct', 'guaranteed']).default('direct'),
    accessType: z.enum(['exclusive', 'non-exclusive']).default('exclusive'),
    queueType: z.enum(['combined', 'single']).default('combined'),
    maximumTimeToLive: z.int().min(-1).max(95_000_000).default(86_400),
    maxMsgSpoolUsage: z.int().min(0).max(800_000).optional(),
    unlimitedMsgSpoolUsage: z.boolean().default(false),
  })
  .superRefine((value, context) => {
    if (value.messageDeliveryMode === 'guaranteed' && value.maxMsgSpoolUsage === 0 && !value.unlimitedMsgSpoolUsage) {
      const message = '0 switches the quota of the queue off; say `unlimitedMsgSpoolUsage: true` if that is meant'
      context.addIssue({ code: 'custom', path: ['maxMsgSpoolUsage'], message })
    }
    if (value.unlimitedMsgSpoolUsage && (value.maxMsgSpoolUsage ?? 0) > 0) {
      const message = 'contradicts `maxMsgSpoolUsage`; leave one of them out'
      context.addIssue({ code: 'custom', path: ['unlimitedMsgSpoolUsage'], message })
    }
  })

const productVersion = z.strictObject({
  version: semanticVersion,
  displayName: name.optional(),
  description,
  state: z.enum(['DRAFT', 'RELEASED', 'DEPRECATED', 'RETIRED']).default('DRAFT'),
  approvalType: z.enum(['automatic', 'manual']).default('automatic'),
  public: z.boolean().default(false),
  eventApis: z
    .array(
      z.preprocess(
        (value) => (typeof value === 'string' ? { id: value } : value),
        z.strictObject({ id: catalogueId, version: eventApiVersion.optional() }),
      ),
    )
    .max(999)
    .default([]),
  plans: z.array(plan).max(128).default([]),
  brokers: z.array(catalogueId).max(128).default([]),
  customAttributes: attributes,
})

const credential = z
  .strictObject({
    name,
    consumerKey: text(consumerKeyProblem).optional(),
    consumerSecret: text(consumerSecretProblem).optional(),
    consumerSecretEnv: environmentVariable.optional(),
    expiresAt: timestamp.optional(),
  })
  .superRefine((value, context) => {
    const secretKey = value.consumerSecret === undefined ? 'consumerSecretEnv' : 'consumerSecret'
    if (value.consumerSecret !== undefined && value.consumerSecretEnv !== undefined) {
      const message = 'stands beside `consumerSecret`; give one of them'
      context.addIssue({ code: 'custom', path: ['consumerSecretEnv'], message })
    } else if (value[secretKey] !== undefined && value.consumerKey === undefined) {
      context.addIssue({ code: 'custom', path: [secretKey], message: 'needs a `consumerKey` beside it' })
    }
  })

/** The shape of a portal file, item by item; what refers to other items is checked apart. */
export const portalFileSchema = z.strictObject({
  environments: z.array(z.strictObject({ id: catalogueId, name: name.optional() })).default([]),
  eventMeshes: z
    .array(z.strictObject({ id: catalogueId, name: name.optional(), environment: catalogueId }))
    .default([]),
  brokers: z
    .array(
      z.strictObject({
        id: catalogueId,
        name: name.optional(),
        eventMesh: catalogueId.optional(),
        management: management.optional(),
        messaging: messaging.optional(),
        policy: policy.optional(),
      }),
    )
    .default([]),
  applicationDomains: z.array(z.strictObject({ id: catalogueId, name: name.optional(), description })).default([]),
  eventApis: z
    .array(
      z.strictObject({
        id: catalogueId,
        version: eventApiVersion,
        name: name.optional(),
        displayName: name.optional(),
        description,
        applicationDomain: catalogueId.optional(),
        document: path,
        viewpoint: z.enum(['client', 'provider']).optional(),
        customAttributes: attributes,
      }),
    )
    .default([]),
  products: z
    .array(
      z.strictObject({
        id: catalogueId,
        name: name.optional(),
        applicationDomain: catalogueId.optional(),
        description,
        shared: z.boolean().default(false),
        attributes,
        versions: z.array(productVersion).min(1, 'needs at least one version'),
      }),
    )
    .default([]),
  registrations: z
    .array(
      z.strictObject({
        id: externalId,
        name: name.optional(),
        source: externalId.default('portal-file'),
        sourceOwner: name.optional(),
        applicationDomain: catalogueId.optional(),
        filters: filtersSchema,
        attributes,
        accessRequests: z
          .array(
            z.strictObject({
              id: externalId,
              product: catalogueId,
              version: semanticVersion.optional(),
              plan: catalogueId,
              filters: filtersSchema,
              state: z.enum(['PENDING_APPROVAL', 'APPROVED', 'REJECTED', 'REVOKED']).optional(),
              expiresAt: timestamp.optional(),
            }),
          )
          .default([]),
        credentials: z.array(credential).default([]),
      }),
    )
    .default([]),
})

/** A portal file of the right shape. */
export type PortalFileInput = z.output<typeof portalFileSchema>
