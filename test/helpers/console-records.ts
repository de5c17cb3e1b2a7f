import { accountId, brokerId, eventApiId, productId, registrationId } from '../../src/domain/ids.ts'
import { explainBroker, explainVisibility } from '../../src/domain/visibility.ts'
import { cataloguePage, eventApisPage } from '../../src/http/console/catalogue-page.ts'
import { differencePage } from '../../src/http/console/difference-page.ts'
import { driftPage } from '../../src/http/console/drift-page.ts'
import type { Page } from '../../src/http/console/page.ts'
import { planPage } from '../../src/http/console/plan-page.ts'
import { eventApiPage, productPage } from '../../src/http/console/product-page.ts'
import { runPage } from '../../src/http/console/run-page.ts'
import { runsPage } from '../../src/http/console/runs-page.ts'
import type { Plan } from '../../src/reconcile/plan.ts'
import type { CatalogueEventApi, CatalogueProduct } from '../../src/store/catalogue-view.ts'
import type { DriftView } from '../../src/store/drift-view.ts'
import type { RunView } from '../../src/store/runs-view.ts'

export const NOW_MS = Date.parse('2026-03-10T12:34:56Z')

export const difference = (changes: Partial<DriftView> = {}): DriftView => ({
  id: 7,
  brokerId: 'broker-1',
  registrationId: 'app-1',
  objectKind: 'queue',
  objectName: 'queue-1',
  kind: 'changed',
  reason: 'changed-on-broker',
  before: { owner: 'x' },
  after: { owner: 'y' },
  action: 'reported',
  runId: 'run-1',
  repairedByRunId: null,
  detectedAtMs: NOW_MS - 60_000,
  lastSeenAtMs: NOW_MS,
  repairedAtMs: null,
  ...changes,
})

export const run = (changes: Partial<RunView> = {}): RunView => ({
  id: 'run-1',
  brokerId: 'broker-1',
  registrationId: 'app-1',
  kind: 'registration',
  trigger: 'poll',
  outcome: 'in-sync',
  steps: 1,
  held: 0,
  drift: 0,
  conflicts: 0,
  detail: {},
  errorCode: null,
  error: null,
  startedAtMs: NOW_MS - 2000,
  finishedAtMs: NOW_MS - 1000,
  ...changes,
})

export const plan = (changes: Partial<Plan> = {}): Plan => ({
  accountId: accountId('default'),
  brokerId: brokerId('broker-1'),
  registrationId: registrationId('app-1'),
  generation: 3,
  steps: [],
  drift: [],
  conflicts: [],
  refused: null,
  waitsUntilMs: null,
  notes: [],
  ...changes,
})

/** Every page about records and the catalogue, with this text wherever a text from outside stands. */
export function pagesWith(text: string): Readonly<Record<string, Page>> {
  const brokers = [{ id: text, name: `${text}n` }]
  const strange = difference({
    brokerId: text,
    registrationId: text,
    objectName: text,
    runId: text,
    repairedByRunId: text,
    reason: text,
    kind: text,
    action: text,
    objectKind: text,
    before: { [text]: text, members: [text], empty: [] },
    after: { [text]: `${text}2`, members: [], nested: { [text]: text } },
  })
  const ofQueue = difference({
    id: 8,
    before: { subscriptions: [text] },
    after: { subscriptions: [text] },
    repairedAtMs: NOW_MS,
  })
  const conflict = difference({
    id: 9,
    kind: 'conflict',
    reason: 'foreign-username',
    objectKind: 'clientUsername',
    objectName: text,
  })
  const failed = run({
    id: text,
    brokerId: text,
    registrationId: text,
    trigger: text,
    outcome: text,
    steps: 3,
    held: 2,
    detail: {
      ran: [`+ create queue ${text} (not-created-yet)`, text],
      held: [`~ ${text} (changed-on-broker) [held: ${text}]`],
    },
    errorCode: text,
    error: text,
  })
  const page = { isAdministrator: true, offBecause: null, nowMs: NOW_MS }
  const buckets = [{ fromMs: NOW_MS, detected: 3, repaired: 1 }]
  const query = {
    broker: text,
    registration: text,
    kind: text,
    outcome: text,
    trigger: text,
    after: text,
    search: text,
  }
  return {
    drift: driftPage({
      query: { ...query, span: '24h', from: NOW_MS },
      brokers,
      kinds: [text],
      buckets,
      open: [{ kind: text, count: 1 }],
      differences: [strange, ofQueue],
      older: text,
      nowMs: NOW_MS,
    }),
    difference: differencePage({ ...page, difference: strange }),
    conflict: differencePage({ ...page, difference: conflict }),
    'difference that is off': differencePage({ ...page, difference: conflict, offBecause: text }),
    runs: runsPage({ query, brokers, runs: [failed], older: text, nowMs: NOW_MS }),
    run: runPage({
      ...page,
      run: failed,
      differences: [strange],
      moreDifferences: true,
      during: [],
      moreDuring: false,
      progress: null,
    }),
    sweep: runPage({
      ...page,
      run: run({ kind: 'sweep', brokerId: text, registrationId: null, detail: { changed: 1, [text]: text } }),
      differences: [],
      moreDifferences: false,
      during: [failed],
      moreDuring: true,
      progress: null,
    }),
    plan: planPage({
      ...page,
      query: { broker: text, registration: text },
      brokers,
      found: {
        plans: [strangePlan(text)],
        complete: false,
        failures: [{ brokerId: text, code: text, message: text }],
      },
    }),
    catalogue: cataloguePage({
      query: { search: text, after: text },
      counts: { visible: 1, hidden: 1 },
      products: [product(text)],
      next: text,
    }),
    product: productPage({ product: product(text), uses: [{ version: text, state: text, count: 2 }] }),
    'Event APIs': eventApisPage({
      query: { search: text, after: text },
      eventApis: [{ id: text, version: text, name: text, displayName: text, channels: 1, products: 0 }],
      next: text,
    }),
    'Event API': eventApiPage([eventApi(text), { ...eventApi(text), version: `${text}2` }]),
  }
}

function strangePlan(text: string): Plan {
  const queue = { kind: 'queue', name: text } as const
  const reason = 'changed-in-catalogue' as const
  const object = { ...queue, attributes: {}, members: {} }
  const conflict = {
    object: queue,
    kind: 'conflict',
    before: {},
    after: { [text]: text },
    reason: 'foreign-object',
  } as const
  const step = { disruptive: true, decision: 'held', because: text } as const
  return plan({
    brokerId: brokerId(text),
    registrationId: registrationId(text),
    steps: [
      { ...step, action: { type: 'create', object, reason } },
      {
        ...step,
        action: { type: 'update', ...queue, changes: { [text]: { before: text, after: text } }, disables: [], reason },
      },
      { ...step, action: { type: 'add-member', ...queue, memberKind: 'subscriptions', member: text, reason } },
      { ...step, action: { type: 'remove-member', ...queue, memberKind: 'subscriptions', member: text, reason } },
      { ...step, action: { type: 'set-password', kind: 'clientUsername', name: text, credentialVersion: 2, reason } },
      { ...step, action: { type: 'delete', ...queue, reason } },
    ],
    drift: [{ ...conflict, object: { kind: 'aclProfile', name: text } }],
    conflicts: [conflict, { ...conflict, reason: 'profile-unsuitable' }],
    refused: { reason: 'too-many-withdrawals', message: text },
    waitsUntilMs: NOW_MS + 60_000,
    notes: [text],
  })
}

export function product(text: string): CatalogueProduct {
  const broker = {
    id: text,
    eventMeshName: text,
    environmentName: null,
    managementIsComplete: false,
    messaging: { host: text, protocols: [] },
  }
  const policy = {
    messageDeliveryMode: 'guaranteed',
    accessType: 'exclusive',
    queueType: 'single',
    maximumTimeToLive: 0,
    maxMsgSpoolUsage: 500,
  } as const
  const plans = [
    { id: text, name: `${text}n`, classOfServicePolicy: policy },
    { id: `${text}2`, name: text, classOfServicePolicy: { ...policy, messageDeliveryMode: 'direct' } as const },
  ]
  const facts = { shared: true, state: 'DRAFT', public: false, planNames: [text], brokers: [broker] } as const
  return {
    id: productId(text),
    name: text,
    description: text,
    applicationDomainId: text,
    shared: true,
    attributes: [{ name: text, value: text }],
    versions: [
      {
        ...facts,
        ...explainVisibility(facts),
        version: text,
        displayName: text,
        description: text,
        approvalType: 'manual',
        eventApis: [{ id: eventApiId(text), version: text }],
        plans,
        brokers: [brokerId(text)],
        customAttributes: [],
        brokerUses: [{ id: text, ...explainBroker(broker) }],
      },
    ],
  }
}

const eventApi = (text: string): CatalogueEventApi => ({
  id: eventApiId(text),
  version: text,
  name: text,
  displayName: text,
  description: text,
  applicationDomainId: text,
  viewpoint: 'provider',
  channels: [{ name: text, clientMayPublish: true, clientMaySubscribe: true, parameterEnums: { [text]: [text] } }],
  customAttributes: [],
  documentRevision: text,
  products: [{ id: text, version: text, state: text }],
})
