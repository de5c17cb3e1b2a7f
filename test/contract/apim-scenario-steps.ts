type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** One request and what it must be answered. */
export interface Step {
  readonly method: Method
  /** Below `/api/v2/apim`. */
  readonly path: string
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** An administrator's with all permissions when absent. */
  readonly token?: 'powerless' | null
  /** Fields that `validationDetails` must name. */
  readonly wrong?: readonly string[]
}

const STALE = { 'if-match': '"of-long-ago"' }

const step = (status: number, method: Method, path: string, rest: Partial<Step> = {}): Step => ({
  status,
  method,
  path,
  ...rest,
})
const get = (path: string): Step => step(200, 'GET', path)
const absent = (path: string): Step => step(404, 'GET', path)
const wrong = (path: string, ...fields: readonly string[]): Step => step(400, 'GET', path, { wrong: fields })
const post = (path: string, body: object, status = 200): Step => step(status, 'POST', path, { body })
const refused = (method: 'POST' | 'PATCH', path: string, body: unknown, ...fields: readonly string[]): Step =>
  step(400, method, path, { body, wrong: fields })
const patch = (path: string, body: object): Step => step(200, 'PATCH', path, { body })
/** What everything with an ETag has in common, until it is gone. */
const stale = (path: string, body: object): readonly Step[] => [
  step(412, 'PATCH', path, { body, headers: STALE }),
  step(412, 'DELETE', path, { headers: STALE }),
]
const remove = (path: string): readonly Step[] => [step(204, 'DELETE', path), step(404, 'DELETE', path)]

const PRODUCT = '/eventApiProducts/orders'
const APP = '/appRegistrations/app-1'
const REQUEST = `${APP}/accessRequests/request-1`

export const products: readonly Step[] = [
  get('/eventApiProducts'),
  get(
    "/eventApiProducts?where=name=='ord*';plans.id==gold&sortFieldName=name&sortDirection=desc&pageSize=1&pageNumber=2",
  ),
  wrong('/eventApiProducts?where=name=;=x', 'where'),
  wrong('/eventApiProducts?where=colour==red', 'where'),
  wrong('/eventApiProducts?pageSize=101&pageNumber=0&sortDirection=up', 'pageSize', 'pageNumber', 'sortDirection'),
  get(PRODUCT),
  absent('/eventApiProducts/hidden'),
  get(`${PRODUCT}/history`),
  absent('/eventApiProducts/hidden/history'),
  get(`${PRODUCT}/history/1.0.0`),
  absent(`${PRODUCT}/history/9.9.9`),
  get(`${PRODUCT}/plans`),
  absent('/eventApiProducts/hidden/plans'),
  get(`${PRODUCT}/plans/gold`),
  absent(`${PRODUCT}/plans/none`),
  get(`${PRODUCT}/plans/gold/eventApis`),
  absent(`${PRODUCT}/plans/none/eventApis`),
  get(`${PRODUCT}/plans/gold/eventApis/ordersapi`),
  get(`${PRODUCT}/plans/gold/eventApis/ordersapi?asyncApiVersion=2.2.0`),
  get(`${PRODUCT}/plans/gold/eventApis/ordersapi?asyncApiVersion=2.5.0&apiFormat=application/x-yaml`),
  get(`${PRODUCT}/plans/gold/eventApis/ordersapi?apiFormat=application/zip`),
  wrong(`${PRODUCT}/plans/gold/eventApis/ordersapi?asyncApiVersion=1.2.0`, 'asyncApiVersion'),
  absent(`${PRODUCT}/plans/gold/eventApis/none`),
]

export const productAttributes: readonly Step[] = [
  post(`${PRODUCT}/attributes`, { name: 'color', value: 'red' }),
  refused('POST', `${PRODUCT}/attributes`, { name: 'color', value: 'blue' }, 'name'),
  refused('POST', `${PRODUCT}/attributes`, { name: 'a b', value: 1 }, 'name', 'value'),
  step(415, 'POST', `${PRODUCT}/attributes`, { body: 'name=color', headers: { 'content-type': 'text/plain' } }),
  step(404, 'POST', '/eventApiProducts/nothing/attributes', { body: { name: 'color', value: 'red' } }),
  get(`${PRODUCT}/attributes`),
  absent('/eventApiProducts/nothing/attributes'),
  get(`${PRODUCT}/attributes/color`),
  absent(`${PRODUCT}/attributes/size`),
  patch(`${PRODUCT}/attributes/color`, { value: 'green' }),
  refused('PATCH', `${PRODUCT}/attributes/color`, { value: null }, 'value'),
  ...stale(`${PRODUCT}/attributes/color`, { value: 'late' }),
]

export const registrations: readonly Step[] = [
  post('/appRegistrations', { registrationId: 'app-1', source: 'portal', name: 'App', sourceOwner: 'ada' }, 201),
  step(409, 'POST', '/appRegistrations', { body: { registrationId: 'app-1', source: 'portal', name: 'App' } }),
  refused('POST', '/appRegistrations', { registrationId: '?', name: '' }, 'registrationId', 'source', 'name'),
  refused(
    'POST',
    '/appRegistrations',
    { registrationId: 'app-2', source: 'portal', name: 'App', applicationDomainId: 'nowhere' },
    'applicationDomainId',
  ),
  refused('POST', '/appRegistrations', undefined),
  refused('POST', '/appRegistrations', '{"registrationId":'),
  get('/appRegistrations'),
  get('/appRegistrations?where=registrationId==app*&pageSize=100&sortFieldName=name'),
  wrong('/appRegistrations?where=registrationId&sortFieldName=password', 'sortFieldName'),
  get(APP),
  absent('/appRegistrations/app-2'),
  patch(APP, { name: 'Renamed', applicationDomainId: 'sales' }),
  refused('PATCH', APP, { name: 'a\nb', registrationId: 'app-2' }, 'name', 'registrationId'),
  ...stale(APP, { name: 'late' }),
]

export const ofRegistration: readonly Step[] = [
  post(`${APP}/attributes`, { name: 'color', value: 'red' }),
  refused('POST', `${APP}/attributes`, { name: 'color', value: 'red' }, 'name'),
  get(`${APP}/attributes`),
  absent('/appRegistrations/app-2/attributes'),
  get(`${APP}/attributes/color`),
  absent(`${APP}/attributes/size`),
  patch(`${APP}/attributes/color`, { value: 'green' }),
  ...stale(`${APP}/attributes/color`, { value: 'late' }),

  post(`${APP}/filters`, { name: 'region', values: ['EU', 'U*'] }),
  refused('POST', `${APP}/filters`, { name: 'region', values: ['EU'] }, 'name'),
  refused('POST', `${APP}/filters`, { name: 'orderId', values: ['a/b', '>'] }, 'values[0]', 'values[1]'),
  get(`${APP}/filters`),
  absent('/appRegistrations/app-2/filters'),
  get(`${APP}/filters/region`),
  absent(`${APP}/filters/orderId`),
  patch(`${APP}/filters/region`, { values: ['US'] }),
  ...stale(`${APP}/filters/region`, { values: ['EU'] }),

  post(`${APP}/credentials`, { name: 'generated' }),
  post(`${APP}/credentials`, { name: 'with a key', secret: { consumerKey: 'own-key-1' } }),
  post(`${APP}/credentials`, { name: 'all', secret: { consumerKey: 'own-key-2', consumerSecret: 'own-secret-2' } }),
  refused('POST', `${APP}/credentials`, { name: 'all', secret: { consumerKey: 'own-key-3' } }, 'name'),
  refused('POST', `${APP}/credentials`, { name: 'again', secret: { consumerKey: 'own-key-2' } }, 'secret.consumerKey'),
  refused(
    'POST',
    `${APP}/credentials`,
    { name: 'short', secret: { consumerKey: 'key', consumerSecret: 'a b' } },
    'secret.consumerKey',
    'secret.consumerSecret',
  ),
  get(`${APP}/credentials`),
  absent('/appRegistrations/app-2/credentials'),
  get(`${APP}/credentials/own-key-2`),
  absent(`${APP}/credentials/own-key-3`),
  patch(`${APP}/credentials/own-key-2`, { secret: { consumerKey: 'own-key-2', consumerSecret: 'next-secret' } }),
  refused('PATCH', `${APP}/credentials/own-key-2`, { secret: { consumerKey: 'own-key-1' } }, 'secret.consumerKey'),
  refused(
    'PATCH',
    `${APP}/credentials/own-key-2`,
    { secret: { consumerKey: 'own-key-2', colour: 'red' } },
    'secret.colour',
  ),
  ...stale(`${APP}/credentials/own-key-2`, { name: 'late' }),

  post(
    `${APP}/webhooks`,
    {
      uri: 'https://hooks.example.org',
      name: 'hook',
      method: 'POST',
      authentication: { basicAuth: { username: 'ada', password: 'a-password' } },
    },
    201,
  ),
  refused('POST', `${APP}/webhooks`, { uri: 'https://hooks.example.org', name: 'hook', method: 'POST' }, 'name'),
  refused('POST', `${APP}/webhooks`, { uri: 'ftp://hooks', method: 'GET' }, 'uri', 'method'),
  get(`${APP}/webhooks`),
  absent('/appRegistrations/app-2/webhooks'),
  get(`${APP}/webhooks/hook`),
  absent(`${APP}/webhooks/none`),
  patch(`${APP}/webhooks/hook`, { uri: 'https://hooks.example.org', method: 'PUT', mode: 'serial' }),
  ...stale(`${APP}/webhooks/hook`, { mode: 'parallel' }),
]

export const ofRequest: readonly Step[] = [
  post(`${APP}/accessRequests`, { accessRequestId: 'request-1', eventApiProductId: 'orders', planId: 'gold' }),
  post(`${APP}/accessRequests`, { accessRequestId: 'request-2', eventApiProductId: 'orders', planId: 'silver' }),
  post(`${APP}/accessRequests`, { accessRequestId: 'request-3', eventApiProductId: 'secret', planId: 'gold' }),
  refused(
    'POST',
    `${APP}/accessRequests`,
    { accessRequestId: 'request-1', eventApiProductId: 'orders', planId: 'gold' },
    'accessRequestId',
  ),
  refused(
    'POST',
    `${APP}/accessRequests`,
    { accessRequestId: 'request-4', eventApiProductId: 'hidden', planId: 'gold' },
    'eventApiProductId',
  ),
  refused(
    'POST',
    `${APP}/accessRequests`,
    { accessRequestId: 'request-4', eventApiProductId: 'orders', planId: 'tin' },
    'planId',
  ),
  get(`${APP}/accessRequests`),
  get(`${APP}/accessRequests?where=state==APPROVED&pageSize=1`),
  wrong(`${APP}/accessRequests?where=state==`, 'where'),
  get(REQUEST),
  get(`${APP}/accessRequests/request-2`),
  absent(`${APP}/accessRequests/request-9`),
  patch(`${APP}/accessRequests/request-3`, { state: 'APPROVED' }),
  refused('PATCH', REQUEST, { state: 'LIVE' }, 'state'),
  refused('PATCH', REQUEST, { state: 'GONE' }, 'state'),
  ...stale(REQUEST, { state: 'REVOKED' }),

  post(`${REQUEST}/filters`, { name: 'region', values: ['EU'] }),
  refused('POST', `${REQUEST}/filters`, { name: 'region', values: ['EU'] }, 'name'),
  get(`${REQUEST}/filters`),
  absent(`${APP}/accessRequests/request-9/filters`),
  get(`${REQUEST}/filters/region`),
  absent(`${REQUEST}/filters/orderId`),
  patch(`${REQUEST}/filters/region`, { values: ['US'] }),
  ...stale(`${REQUEST}/filters/region`, { values: ['EU'] }),

  get(`${REQUEST}/eventApis`),
  absent(`${APP}/accessRequests/request-9/eventApis`),
  get(`${REQUEST}/eventApis/ordersapi`),
  get(`${REQUEST}/eventApis/ordersapi?apiFormat=application/x-yaml`),
  absent(`${REQUEST}/eventApis/none`),
  get(`${APP}/eventApis`),
  absent('/appRegistrations/app-2/eventApis'),
  get(`${APP}/eventApis/ordersapi`),
  absent(`${APP}/eventApis/none`),
  // With everything that it can hold.
  get(APP),
]

export const gateways: readonly Step[] = [
  get('/gateways'),
  get('/gateways?where=name==broker*&sortFieldName=name'),
  wrong('/gateways?where=name', 'where'),
  get('/gateways/broker1'),
  absent('/gateways/broker9'),
]

export const removals: readonly Step[] = [
  ...remove(`${REQUEST}/filters/region`),
  ...remove(REQUEST),
  ...remove(`${APP}/credentials/own-key-2`),
  ...remove(`${APP}/webhooks/hook`),
  ...remove(`${APP}/filters/region`),
  ...remove(`${APP}/attributes/color`),
  ...remove(`${PRODUCT}/attributes/color`),
  ...remove(APP),
]

/** What stands for a parameter of a path in requests that any operation gets, before the removals. */
const IDS: Readonly<Record<string, string>> = {
  eventApiProductId: 'orders',
  version: '1.0.0',
  planId: 'gold',
  eventApiId: 'ordersapi',
  registrationId: 'app-1',
  accessRequestId: 'request-1',
  attributeName: 'color',
  filterName: 'region',
  consumerKey: 'own-key-2',
  webhookId: 'hook',
  messagingServiceId: 'broker1',
}

/** Each takes a body; another field than these is unknown to it. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /eventApiProducts/{eventApiProductId}/attributes': { name: 'size.of', value: 'L' },
  'PATCH /eventApiProducts/{eventApiProductId}/attributes/{attributeName}': { value: 'blue' },
  'POST /appRegistrations': { registrationId: 'app-9', source: 'portal', name: 'App' },
  'PATCH /appRegistrations/{registrationId}': { name: 'Other' },
  'POST /appRegistrations/{registrationId}/attributes': { name: 'size.of', value: 'L' },
  'PATCH /appRegistrations/{registrationId}/attributes/{attributeName}': { value: 'blue' },
  'POST /appRegistrations/{registrationId}/filters': { name: 'orderId', values: ['1'] },
  'PATCH /appRegistrations/{registrationId}/filters/{filterName}': { values: ['1'] },
  'POST /appRegistrations/{registrationId}/credentials': { name: 'more' },
  'PATCH /appRegistrations/{registrationId}/credentials/{consumerKey}': { name: 'other' },
  'POST /appRegistrations/{registrationId}/accessRequests': {
    ...{ accessRequestId: 'request-9', eventApiProductId: 'orders', planId: 'gold' },
  },
  'PATCH /appRegistrations/{registrationId}/accessRequests/{accessRequestId}': { state: 'REVOKED' },
  'POST /appRegistrations/{registrationId}/accessRequests/{accessRequestId}/filters': {
    name: 'orderId',
    values: ['1'],
  },
  'PATCH /appRegistrations/{registrationId}/accessRequests/{accessRequestId}/filters/{filterName}': { values: ['1'] },
  'POST /appRegistrations/{registrationId}/webhooks': { uri: 'https://hooks.example.org', method: 'PUT' },
  'PATCH /appRegistrations/{registrationId}/webhooks/{webhookId}': { method: 'PUT' },
}

/** Of every operation of the description: what it must refuse whatever it does. */
export function refusalsOf(operation: string): readonly Step[] {
  const [method, template = ''] = operation.split(' ') as [Method, string?]
  const path = template.replaceAll(/\{([^}]*)\}/g, (_all, name: string) => IDS[name] ?? `no id for ${name}`)
  const body = BODIES[operation]
  const sent = body === undefined ? {} : { body }
  if (body === undefined && (method === 'POST' || method === 'PATCH')) throw new Error(`no body for ${operation}`)
  return [
    step(401, method, path, { ...sent, token: null }),
    step(403, method, path, { ...sent, token: 'powerless' }),
    step(400, method, `${path}?colour=red&query=x`, { ...sent, wrong: ['colour', 'query'] }),
    ...(body === undefined ? [] : [step(400, method, path, { body: { ...body, colour: 'red' }, wrong: ['colour'] })]),
  ]
}
