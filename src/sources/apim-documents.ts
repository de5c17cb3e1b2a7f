import { createHash } from 'node:crypto'
import { InvalidInputError } from '../domain/errors.ts'
import { eventApiId } from '../domain/ids.ts'
import type { PortalEventApi } from '../domain/portal-file.ts'
import {
  type DocumentRecord,
  eventApiKey,
  type KnownCatalogue,
  type ReadDocument,
  type UnderstoodDocument,
} from '../domain/remote-catalogue.ts'
import { concurrently } from '../reconcile/concurrently.ts'
import type { ApimClient } from './apim-client.ts'
import type { ListedEventApi } from './apim-products.ts'
import type { Findings } from './findings.ts'

/** Reads and checks an AsyncAPI document that holds all that it refers to. Throws InvalidInputError. */
export type UnderstandDocument = (name: string, text: string) => Promise<UnderstoodDocument>

/** An Event API of a product version, and where its document is. */
export interface WantedDocument {
  readonly eventApi: ListedEventApi
  readonly path: string
  /** What else is known of it, as text: when it changes, the document is looked at again. */
  readonly context: string
}

export interface DocumentsReading {
  readonly eventApis: readonly PortalEventApi[]
  readonly documents: readonly ReadDocument[]
}

interface DocumentsTask {
  readonly client: ApimClient
  readonly known: KnownCatalogue['documents']
  readonly understand: UnderstandDocument
  readonly findings: Findings
  readonly nowMs: number
  /** Reads all of them, however fresh. */
  readonly all: boolean
  readonly signal: AbortSignal | undefined
}

/**
 * No list shows that a document changed under its version, and none has an ETag: one that looks the same is read again
 * after this time, and costs no more than that when it is the same.
 */
const LOOK_AGAIN_AFTER_MS = 3_600_000
const AT_A_TIME = 4

/** The documents that are new, may have changed, or were not looked at for an hour. */
export async function readDocuments(wanted: readonly WantedDocument[], task: DocumentsTask): Promise<DocumentsReading> {
  const eventApis: PortalEventApi[] = []
  const documents: ReadDocument[] = []
  const due = firstOfEach(wanted).filter((each) => isDue(each, task))
  await concurrently(due, AT_A_TIME, async (each) => {
    const reading = await readOne(each, task)
    if (reading.document !== null) documents.push(reading.document)
    if (reading.eventApi !== null) eventApis.push(reading.eventApi)
  })
  return { eventApis: eventApis.sort(byKey), documents }
}

/** Several products may have one Event API; its document is asked for where it is met first. */
function firstOfEach(wanted: readonly WantedDocument[]): readonly WantedDocument[] {
  const first = new Map<string, WantedDocument>()
  for (const each of wanted) {
    const key = eventApiKey(each.eventApi.id, each.eventApi.version)
    if (!first.has(key)) first.set(key, each)
  }
  return [...first.values()]
}

function isDue(wanted: WantedDocument, { known, findings, nowMs, all }: DocumentsTask): boolean {
  const record = known.get(eventApiKey(wanted.eventApi.id, wanted.eventApi.version))
  if (all || record === undefined || record.listedDigest !== listedDigest(wanted)) return true
  if (nowMs - record.readAtMs >= LOOK_AGAIN_AFTER_MS) return true
  if (record.problem !== null) findings.warn(record.problem)
  return false
}

const listedDigest = ({ eventApi, context }: WantedDocument): string => digest(JSON.stringify([eventApi, context]))

interface OneReading {
  /** Null: nothing was learnt. */
  readonly document: ReadDocument | null
  /** Null: it is as it was, or cannot be used. */
  readonly eventApi: PortalEventApi | null
}

async function readOne(wanted: WantedDocument, task: DocumentsTask): Promise<OneReading> {
  const { eventApi } = wanted
  const name = `Event API ${eventApi.id} ${eventApi.version}`
  const value = await task.client.document(wanted.path, task.signal)
  if (value === null) {
    task.findings.warn(`The document of ${name} is not there; what is stored of it stays.`)
    return { document: null, eventApi: null }
  }
  const text = JSON.stringify(isMap(value) ? withoutPlan(value) : value)
  const before = task.known.get(eventApiKey(eventApi.id, eventApi.version))
  const record: DocumentRecord = {
    listedDigest: listedDigest(wanted),
    documentDigest: digest(text),
    readAtMs: task.nowMs,
    problem: null,
  }
  const ids = { id: eventApi.id, version: eventApi.version }
  if (before?.documentDigest === record.documentDigest) {
    if (before.problem !== null) {
      task.findings.warn(before.problem)
      return { document: { ...ids, ...record, problem: before.problem }, eventApi: null }
    }
    if (before.listedDigest === record.listedDigest && !task.all)
      return { document: { ...ids, ...record }, eventApi: null }
  }
  try {
    const understood = await task.understand(name, text)
    return { document: { ...ids, ...record }, eventApi: toEventApi(eventApi, name, understood) }
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error
    const problem = unusable(name, error)
    task.findings.warn(problem)
    return { document: { ...ids, ...record, problem }, eventApi: null }
  }
}

const MAX_PROBLEM_LENGTH = 500

function unusable(name: string, { problems }: InvalidInputError): string {
  const [first] = problems
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : ''
  const why = `${first?.message ?? 'it cannot be read'}${more}`.slice(0, MAX_PROBLEM_LENGTH)
  return `The document of ${name} cannot be used, what is stored of it stays: ${why}`
}

function toEventApi(listed: ListedEventApi, name: string, understood: UnderstoodDocument): PortalEventApi {
  const { channels, viewpoint, asyncApiVersion, title, json } = understood
  return {
    id: eventApiId(listed.id),
    version: listed.version,
    name: listed.name,
    displayName: listed.displayName,
    description: listed.description,
    channels,
    // The API does not say it.
    applicationDomainId: null,
    customAttributes: listed.customAttributes,
    viewpoint,
    document: { file: name, asyncApiVersion, title, json },
  }
}

const byKey = (one: PortalEventApi, other: PortalEventApi): number => {
  const [left, right] = [eventApiKey(one.id, one.version), eventApiKey(other.id, other.version)]
  return left < right ? -1 : Number(left > right)
}

type Mutable = Record<string, unknown>

/**
 * The document comes as one product and plan show it. What is theirs goes, so that it is the same whichever was asked,
 * and each plan can show its own again: servers, the keys that name the product, and the bindings of the plan.
 */
function withoutPlan(document: Mutable): Mutable {
  const { servers: _servers, ...root } = structuredClone(document)
  if (isMap(root.info)) {
    for (const key of Object.keys(root.info)) if (PRODUCT_KEY.test(key)) delete root.info[key]
  }
  const channels = isMap(root.channels) ? Object.values(root.channels).filter(isMap) : []
  for (const channel of channels) {
    delete channel.servers
    for (const operation of [channel.publish, channel.subscribe]) if (isMap(operation)) dropPolicy(operation)
  }
  return root
}

const PRODUCT_KEY = /^x-ep-(event-api-product-|application-domain-)/

function dropPolicy(operation: Mutable): void {
  const { bindings } = operation
  if (!isMap(bindings)) return
  delete bindings.solace
  if (Object.keys(bindings).length === 0) delete operation.bindings
}

const isMap = (value: unknown): value is Mutable => typeof value === 'object' && value !== null && !Array.isArray(value)

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')
