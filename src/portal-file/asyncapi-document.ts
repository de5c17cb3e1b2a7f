import type { Channel, Viewpoint } from '../domain/catalogue.ts'
import { InvalidInputError, type Problem } from '../domain/errors.ts'
import type { JsonObject, JsonValue } from '../domain/portal-file.ts'
import { type Bundle, type BundleResult, bundleAlone, bundleReferences } from './bundle-references.ts'
import { DISK, type FileSource } from './file-source.ts'
import { isMap, own } from './portal-file-references.ts'
import { readChannels } from './read-channels.ts'
import { validateAsyncApi } from './validate-asyncapi.ts'
import { parseYaml, problemAt, type YamlSource } from './yaml-source.ts'

const DOCUMENT_MAX_BYTES = 4 * 1024 * 1024

/** An AsyncAPI 2.x document, read, checked and made self-contained. */
export interface AsyncApiDocument {
  /** The path that was read. */
  readonly file: string
  /** `2.0.0` to `2.6.0`. */
  readonly version: string
  /** `info.title` */
  readonly title: string
  readonly viewpoint: Viewpoint
  /** In the client's view. */
  readonly channels: readonly Channel[]
  /** With what it refers to in other files; references inside it are kept. */
  readonly document: JsonObject
  readonly warnings: readonly Problem[]
}

export interface AsyncApiOptions {
  /** Overrides what the document says of itself. */
  readonly viewpoint?: Viewpoint
}

/**
 * Reads an AsyncAPI 2.0 to 2.6 document, YAML or JSON, with the files below its own directory that it refers to.
 * Throws InvalidInputError with every problem at once, each with its file and line.
 */
export async function readAsyncApiDocument(
  path: string,
  options: AsyncApiOptions = {},
  files: FileSource = DISK,
): Promise<AsyncApiDocument> {
  const refuse = (problems: readonly Problem[]) => new InvalidInputError(`The AsyncAPI document ${path}`, problems)
  const read = await files.read(path, DOCUMENT_MAX_BYTES)
  if (!read.ok) throw refuse([{ message: `The file ${read.reason}.`, file: path }])
  return await readDocument(path, read.text, (source) => bundleReferences(source, files), options)
}

/**
 * The same for a document that was sent: `name` stands for its file in problems, and references to other files are
 * refused.
 */
export async function readAsyncApiText(
  name: string,
  text: string,
  options: AsyncApiOptions = {},
): Promise<AsyncApiDocument> {
  if (Buffer.byteLength(text) > DOCUMENT_MAX_BYTES) {
    const message = `has more than ${DOCUMENT_MAX_BYTES} bytes`
    throw new InvalidInputError(`The AsyncAPI document ${name}`, [{ message, file: name }])
  }
  return await readDocument(name, text, bundleAlone, options)
}

async function readDocument(
  path: string,
  text: string,
  bundleDocument: (source: YamlSource) => Promise<BundleResult>,
  options: AsyncApiOptions,
): Promise<AsyncApiDocument> {
  const refuse = (problems: readonly Problem[]) => new InvalidInputError(`The AsyncAPI document ${path}`, problems)
  const parsed = parseYaml(path, text)
  if (!parsed.ok) throw refuse(parsed.problems)
  const version = readVersion(parsed.source)
  if (!version.ok) throw refuse([version.problem])
  const bundled = await bundleDocument(parsed.source)
  if (!bundled.ok) throw refuse(bundled.problems)

  const { bundle } = bundled
  const view = readViewpoint(bundle, options.viewpoint)
  const channels = readChannels(bundle, view.viewpoint)
  const validated = await validateAsyncApi(bundle)
  const problems = [...view.problems, ...channels.problems, ...validated.problems]
  if (problems.length > 0) throw refuse(problems.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0)))
  return {
    file: path,
    version: version.version,
    title: readTitle(bundle.root),
    viewpoint: view.viewpoint,
    channels: channels.channels,
    document: bundle.root,
    warnings: [...channels.warnings, ...validated.warnings],
  }
}

function readVersion(
  source: YamlSource,
): { readonly ok: true; readonly version: string } | { readonly ok: false; readonly problem: Problem } {
  const value = isMap(source.value) ? own(source.value, 'asyncapi') : undefined
  const refuse = (message: string) => ({ ok: false as const, problem: problemAt(source, ['asyncapi'], message) })
  if (value === undefined) return refuse('The file is no AsyncAPI document: it has no `asyncapi` version.')
  if (typeof value === 'string' && /^2\.[0-6]\.\d+$/.test(value)) return { ok: true, version: value }
  if (/^3\b/.test(String(value))) {
    return refuse(`AsyncAPI ${value} is not supported: convert the document to 2.6.0. Versions 2.0 to 2.6 are read.`)
  }
  return refuse(`The AsyncAPI version ${JSON.stringify(value)} is not supported; versions 2.0 to 2.6 are read.`)
}

/** `x-view`, under `info` or at the top, says whose view `publish` and `subscribe` are; without one it is the client's. */
function readViewpoint(
  bundle: Bundle,
  override: Viewpoint | undefined,
): { readonly viewpoint: Viewpoint; readonly problems: readonly Problem[] } {
  if (override !== undefined) return { viewpoint: override, problems: [] }
  const info = own(bundle.root, 'info')
  const places: readonly { readonly path: readonly string[]; readonly value: JsonValue | undefined }[] = [
    { path: ['info', 'x-view'], value: isMap(info) ? own(info, 'x-view') : undefined },
    { path: ['x-view'], value: own(bundle.root, 'x-view') },
  ]
  const views = new Set<Viewpoint>()
  const problems: Problem[] = []
  for (const { path, value } of places) {
    if (value === 'client' || value === 'provider') views.add(value)
    else if (value !== undefined) problems.push(bundle.problemAt(path, '`x-view` must be `client` or `provider`.'))
  }
  if (views.size > 1) problems.push(bundle.problemAt(['x-view'], 'contradicts the `x-view` under `info`.'))
  return { viewpoint: views.has('provider') ? 'provider' : 'client', problems }
}

function readTitle(root: JsonObject): string {
  const info = own(root, 'info')
  const title = isMap(info) ? own(info, 'title') : undefined
  return typeof title === 'string' ? title : ''
}
