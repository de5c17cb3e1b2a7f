import { X509Certificate } from 'node:crypto'
import { dirname, isAbsolute, join } from 'node:path'
import type { z } from 'zod'
import { InvalidInputError, type Problem } from '../domain/errors.ts'
import { consumerSecretProblem } from '../domain/names.ts'
import type { JsonObject, JsonValue, PortalFile } from '../domain/portal-file.ts'
import { newestVersion } from '../domain/semantic-version.ts'
import { DEFAULT_MAX_TOPICS, deriveTopics } from '../domain/topics.ts'
import { type AsyncApiDocument, type AsyncApiOptions, readAsyncApiDocument } from './asyncapi-document.ts'
import { buildPortalFile, type FileResources } from './build-portal-file.ts'
import { DISK, type FileSource } from './file-source.ts'
import {
  eventApiReferences,
  type Item,
  isMap,
  itemsOf,
  own,
  referenceProblems,
  requestedVersion,
  textOf,
} from './portal-file-references.ts'
import { filtersSchema, portalFileSchema } from './portal-file-schema.ts'
import { formatPath, type Path, parseYaml, problemAt, type YamlSource } from './yaml-source.ts'

const PORTAL_FILE_MAX_BYTES = 20 * 1024 * 1024
const CA_FILE_MAX_BYTES = 1024 * 1024

export interface PortalFileOptions {
  /** Value of an environment variable that the file names for a secret. */
  readonly env: (name: string) => string | undefined
  /** The disk when absent. */
  readonly files?: FileSource
}

/**
 * Reads a portal file with the AsyncAPI documents and certificates it names; their paths start at its own directory.
 * Throws InvalidInputError with every problem at once, each with its file and line.
 */
export async function parsePortalFile(path: string, { env, files = DISK }: PortalFileOptions): Promise<PortalFile> {
  const refuse = (problems: readonly Problem[]) => new InvalidInputError(`The portal file ${path}`, problems)
  const read = await files.read(path, PORTAL_FILE_MAX_BYTES)
  if (!read.ok) throw refuse([{ message: `The file ${read.reason}.`, file: path }])
  const parsed = parseYaml(path, read.text)
  if (!parsed.ok) throw refuse(parsed.problems)
  const { source } = parsed
  const value = withoutNulls(source.value)
  if (!isMap(value)) throw refuse([{ message: 'The file must hold a map of sections.', file: path, line: 1 }])

  const root: Item = { value, path: [] }
  const shape = portalFileSchema.safeParse(value)
  const documents = await readDocuments(source, root, files)
  const resources = await readResources(source, root, { env, files })
  const problems = [
    ...(shape.success ? [] : shapeProblems(source, value, shape.error)),
    ...referenceProblems(source, root),
    ...documents.problems,
    ...resources.problems,
    ...topicProblems(source, root, documents.byPosition),
  ]
  if (!shape.success || problems.length > 0) throw refuse(inOrder(path, problems))
  const found: FileResources = { ...resources, documents: documents.byPosition }
  return buildPortalFile(source, shape.data, found)
}

const beside = (file: string, path: string): string => (isAbsolute(path) ? path : join(dirname(file), path))

/** A key without a value is a key that is not there. */
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isMap(value)) return value
  const kept = Object.entries(value).filter(([, entry]) => entry !== null)
  return Object.fromEntries(kept.map(([key, entry]) => [key, withoutNulls(entry)]))
}

function shapeProblems(source: YamlSource, root: JsonObject, error: z.ZodError): readonly Problem[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.filter((part) => typeof part !== 'symbol')
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => problemAt(source, [...path, key], 'is no key that a portal file has here'))
    }
    return [problemAt(source, path, issueMessage(issue, valueAt(root, path)))]
  })
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: '`true` or `false`',
  int: 'a whole number',
  number: 'a number',
  object: 'a map',
  record: 'a map',
  string: 'text',
}

/** Says what is wanted, never what is there: it may be a secret. */
function issueMessage(issue: z.core.$ZodIssue, value: JsonValue | undefined): string {
  if (value === undefined) return 'is missing'
  if (issue.code === 'invalid_type') {
    if (issue.expected === 'string' && typeof value !== 'object') return 'must be text; put it in quotes'
    return `must be ${TYPE_NAMES[issue.expected] ?? `of type ${issue.expected}`}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  if (issue.code === 'too_small' && issue.origin !== 'array') {
    return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
  }
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${issue.origin === 'array' ? ' entries' : ''}`
  return issue.message
}

function valueAt(root: JsonObject, path: Path): JsonValue | undefined {
  let value: JsonValue | undefined = root
  for (const part of path) {
    if (Array.isArray(value)) value = value[Number(part)]
    else value = isMap(value) ? own(value, String(part)) : undefined
  }
  return value
}

async function readDocuments(source: YamlSource, root: Item, files: FileSource) {
  const byPosition = new Map<number, AsyncApiDocument>()
  const problems: Problem[] = []
  // Validation is slow, and versions of an Event API may share a document.
  const reading = new Map<string, Promise<AsyncApiDocument>>()
  for (const item of itemsOf(root, 'eventApis')) {
    const document = textOf(item, 'document')
    if (document === undefined || document === '') continue
    const viewpoint = textOf(item, 'viewpoint')
    const options: AsyncApiOptions = viewpoint === 'client' || viewpoint === 'provider' ? { viewpoint } : {}
    const key = JSON.stringify([document, options])
    const read = reading.get(key) ?? readAsyncApiDocument(beside(source.file, document), options, files)
    reading.set(key, read)
    try {
      byPosition.set(Number(item.path[1]), await read)
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error
      const place = `${formatPath(item.path)}.document (line ${source.lineOf([...item.path, 'document'])})`
      problems.push(...error.problems.map((problem) => ({ ...problem, message: `${problem.message} [${place}]` })))
    }
  }
  return { byPosition, problems }
}

/** Certificates and secrets that the file names. */
async function readResources(source: YamlSource, root: Item, { env, files }: Required<PortalFileOptions>) {
  const problems: Problem[] = []
  const certificates = new Map<string, string>()
  const secrets = new Map<string, string>()
  const readSecret = (item: Item, key: string): void => {
    const name = textOf(item, key)
    if (name === undefined) return
    const value = env(name)
    if (value === undefined || value === '') {
      problems.push(problemAt(source, [...item.path, key], `the environment variable ${name} is not set`))
    } else secrets.set(name, value)
  }
  for (const broker of itemsOf(root, 'brokers')) {
    for (const key of ['management', 'messaging']) {
      const value = own(broker.value, key)
      if (!isMap(value)) continue
      const settings: Item = { value, path: [...broker.path, key] }
      if (key === 'management') readSecret(settings, 'passwordEnv')
      const file = textOf(settings, 'caFile')
      if (file === undefined || certificates.has(file)) continue
      const read = await files.read(beside(source.file, file), CA_FILE_MAX_BYTES)
      const problem = read.ok ? certificateProblem(read.text) : `the file ${read.reason}`
      if (problem !== null) problems.push(problemAt(source, [...settings.path, 'caFile'], problem))
      else if (read.ok) certificates.set(file, read.text)
    }
  }
  for (const registration of itemsOf(root, 'registrations')) {
    for (const credential of itemsOf(registration, 'credentials')) {
      readSecret(credential, 'consumerSecretEnv')
      const secret = secrets.get(textOf(credential, 'consumerSecretEnv') ?? '')
      const problem = secret === undefined ? null : consumerSecretProblem(secret)
      if (problem !== null)
        problems.push(problemAt(source, [...credential.path, 'consumerSecretEnv'], `its value ${problem}`))
    }
  }
  return { certificates, secrets, problems }
}

export function certificateProblem(pem: string): string | null {
  if (pem.includes('PRIVATE KEY')) return 'the file holds a private key; give the certificates only'
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  try {
    for (const block of blocks) new X509Certificate(block)
    return blocks.length > 0 ? null : 'the file holds no PEM certificate'
  } catch {
    return 'the file holds a certificate that cannot be read'
  }
}

/** An access request whose topics cannot be derived would break every reconciliation of its registration. */
function topicProblems(
  source: YamlSource,
  root: Item,
  documents: ReadonlyMap<number, AsyncApiDocument>,
): readonly Problem[] {
  const eventApis = itemsOf(root, 'eventApis')
  return itemsOf(root, 'registrations').flatMap((registration) =>
    itemsOf(registration, 'accessRequests').flatMap((request) => {
      const product = itemsOf(root, 'products').find((item) => textOf(item, 'id') === textOf(request, 'product'))
      const version = product && requestedVersion(product, request)
      if (version === undefined) return []
      const channels = eventApiReferences(version).flatMap((reference) => {
        const versions = eventApis.filter((item) => textOf(item, 'id') === reference.id)
        const wanted = reference.version ?? newestVersion(versions.flatMap((item) => textOf(item, 'version') ?? []))
        const eventApi = versions.find((item) => textOf(item, 'version') === wanted)
        return documents.get(Number(eventApi?.path[1]))?.channels ?? []
      })
      const filters = [request, registration].map((item) => filtersSchema.safeParse(own(item.value, 'filters')))
      if (!filters.every((result) => result.success)) return []
      const topics = deriveTopics({ channels, filters: filters.map(({ data }) => data), maxTopics: DEFAULT_MAX_TOPICS })
      return topics.ok ? [] : [problemAt(source, request.path, topics.problem)]
    }),
  )
}

/** As a person reads: the portal file first, from its top, then the documents. */
function inOrder(path: string, problems: readonly Problem[]): readonly Problem[] {
  const rank = ({ file = '' }: Problem): string => (file === path ? '' : file)
  return problems.toSorted((one, other) =>
    rank(one) === rank(other) ? (one.line ?? 0) - (other.line ?? 0) : rank(one) < rank(other) ? -1 : 1,
  )
}
