// What a remote APIM API answers, as plain JSON; every function takes what is to be different.

type Fields = Readonly<Record<string, unknown>>

export const listedPlan = (id: string, fields: Fields = {}, policy: Fields = {}): Fields => ({
  id,
  name: id,
  solaceClassOfServicePolicy: {
    id,
    messageDeliveryMode: 'guaranteed',
    accessType: 'exclusive',
    queueType: 'combined',
    maximumTimeToLive: 0,
    maxMsgSpoolUsage: 500,
    ...policy,
  },
  ...fields,
})

export const listedApi = (id: string, fields: Fields = {}): Fields => ({
  id,
  name: id,
  displayName: id,
  description: '',
  version: '1.0.0',
  customAttributes: [],
  ...fields,
})

export const listedService = (id: string, fields: Fields = {}): Fields => ({
  id,
  messagingServiceId: id,
  messagingServiceName: id,
  supportedProtocols: ['smfs'],
  environmentName: 'Test',
  eventMeshName: 'Mesh',
  ...fields,
})

export const listedProduct = (id: string, fields: Fields = {}): Fields => ({
  id,
  name: id,
  displayName: id,
  description: '',
  version: '1.0.0',
  state: 'RELEASED',
  applicationDomainId: 'none',
  applicationDomainName: '',
  approvalType: 'automatic',
  brokerType: 'solace',
  createdTime: 1,
  updatedTime: 1,
  createdBy: 'somebody',
  changedBy: 'somebody',
  plans: [listedPlan('gold')],
  apis: [listedApi('orders-api')],
  apiParameters: [],
  solaceMessagingServices: [listedService('broker-1')],
  customAttributes: [],
  attributes: [],
  ...fields,
})

export const listedRequest = (id: string, fields: Fields = {}): Fields => ({
  accessRequestId: id,
  registrationId: 'app-1',
  eventApiProductId: 'orders',
  eventApiProductVersion: '1.0.0',
  planId: 'gold',
  state: 'APPROVED',
  filters: [],
  ...fields,
})

export const listedCredential = (key: string, fields: Fields = {}): Fields => ({
  name: `name-of-${key}`,
  secret: { consumerKey: key, consumerSecret: `secret-of-${key}` },
  issuedAt: 1,
  expiresAt: -1,
  ...fields,
})

export const listedRegistration = (id: string, fields: Fields = {}): Fields => ({
  registrationId: id,
  source: 'portal',
  name: id,
  brokerType: 'solace',
  attributes: [],
  filters: [],
  accessRequests: [listedRequest('request-1')],
  credentials: [listedCredential(`key-of-${id}`)],
  ...fields,
})

export const listedGateway = (id: string, fields: Fields = {}): Fields => ({
  id,
  name: id,
  brokerType: 'solace',
  messagingServiceConnections: [{ name: 'smfs', url: `tcps://${id}.example:55443`, protocol: 'smfs' }],
  environmentName: 'Test',
  eventMeshName: 'Mesh',
  ...fields,
})

export const asyncApi = (topics: readonly string[], fields: Fields = {}): Fields => ({
  asyncapi: '2.6.0',
  info: { title: 'Orders', version: '1.0.0' },
  servers: { 'broker-1-smfs': { url: 'tcps://broker-1.example:55443', protocol: 'smfs' } },
  channels: Object.fromEntries(topics.map((topic) => [topic, { subscribe: { message: { payload: {} } } }])),
  ...fields,
})
