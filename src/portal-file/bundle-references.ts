import { dirname, join, relative, sep } from 'node:path'
import type { Problem } from '../domain/errors.ts'
import type { JsonObject, JsonValue } from '../domain/portal-file.ts'
import type { FileSource } from './file-source.ts'
import { referenceTargetProblems } from './follow-references.ts'
import { isList, isMap } from './portal-file-references.ts'
import { type Path, parseYaml, problemAt, type YamlSource } from './yaml-source.ts'

const FILE_MAX_BYTES = 4 * 1024 * 1024
const TOTAL_MAX_BYTES = 16 * 1024 * 1024
const MAX_FILES = 200

/**
 * A document with every file it refers to inside it, under one extension key of the root, so that a recursive schema
 * stays a reference and the whole is plain JSON.
 */
export interface Bundle {
  readonly root: JsonObject
  /** The file and path that a place in the bundle was read from. */
  locate(path: Path): { readonly source: YamlSource; readonly path: Path }
  problemAt(path: Path, message: string): Problem
}

export type BundleResult =
  | { readonly ok: true; readonly bundle: Bundle }
  | { readonly ok: false; readonly problems: readonly Problem[] }

interface LoadedFile {
  /** Key under the extension; null for the document itself. */
  readonly key: string | null
  readonly source: YamlSource
  readonly directory: string
  value: JsonValue
}

/**
 * Reads what a document refers to: regular files below its own directory, by real path, never an address. The same
 * rule holds for references in those files.
 */
export async function bundleReferences(main: YamlSource, files: FileSource): Promise<BundleResult> {
  return await bundle(main, files)
}

/** The same for a document that came without files: it must hold all that it refers to. */
export async function bundleAlone(main: YamlSource): Promise<BundleResult> {
  return await bundle(main, null)
}

async function bundle(main: YamlSource, files: FileSource | null): Promise<BundleResult> {
  if (!isMap(main.value)) {
    return { ok: false, problems: [problemAt(main, [], 'The document must be a map.')] }
  }
  const place = files === null ? null : { files, realPath: await files.realPath(main.file) }
  const loader = new Loader(main, main.value, place)
  await loader.run()
  if (loader.problems.length > 0) return { ok: false, problems: loader.problems }
  const bundled = loader.bundle()
  const problems = referenceTargetProblems(bundled)
  return problems.length > 0 ? { ok: false, problems } : { ok: true, bundle: bundled }
}

/** Of the document itself. */
interface Place {
  readonly files: FileSource
  readonly realPath: string
}

class Loader {
  readonly problems: Problem[] = []
  readonly #extensionKey: string
  /** Null: no file may be read. */
  readonly #root: { readonly directory: string; readonly files: FileSource } | null
  readonly #files = new Map<string, LoadedFile>()
  readonly #queue: LoadedFile[] = []
  #bytes = 0

  constructor(main: YamlSource, value: JsonObject, place: Place | null) {
    this.#extensionKey = freeKey(value)
    this.#root = place && { directory: dirname(place.realPath), files: place.files }
    this.#add(place?.realPath ?? main.file, { key: null, source: main, directory: this.#root?.directory ?? '', value })
  }

  #add(realPath: string, file: LoadedFile): void {
    this.#files.set(realPath, file)
    this.#queue.push(file)
  }

  async run(): Promise<void> {
    for (let file = this.#queue.shift(); file !== undefined; file = this.#queue.shift()) {
      file.value = await this.#rewrite(file, file.value, [])
    }
  }

  bundle(): Bundle {
    const [main, ...others] = [...this.#files.values()]
    if (main === undefined || !isMap(main.value)) throw new Error('A bundle has its own document')
    const byKey = new Map(others.map((file) => [file.key, file]))
    const extension = Object.fromEntries(others.map((file) => [file.key, file.value]))
    const root = others.length === 0 ? main.value : { ...main.value, [this.#extensionKey]: extension }
    const locate = (path: Path): { source: YamlSource; path: Path } => {
      const file = path[0] === this.#extensionKey ? byKey.get(String(path[1])) : undefined
      return file === undefined ? { source: main.source, path } : { source: file.source, path: path.slice(2) }
    }
    return {
      root,
      locate,
      problemAt: (path, message) => {
        const place = locate(path)
        return problemAt(place.source, place.path, message)
      },
    }
  }

  async #rewrite(file: LoadedFile, value: JsonValue, path: Path): Promise<JsonValue> {
    if (isList(value)) {
      const items: JsonValue[] = []
      for (const [position, item] of value.entries()) items.push(await this.#rewrite(file, item, [...path, position]))
      return items
    }
    if (!isMap(value)) return value
    const entries: [string, JsonValue][] = []
    for (const [key, entry] of Object.entries(value)) {
      const here = [...path, key]
      const isReference = key === '$ref' && typeof entry === 'string'
      entries.push([key, isReference ? await this.#target(file, entry, here) : await this.#rewrite(file, entry, here)])
    }
    return Object.fromEntries(entries)
  }

  /** The reference as it is in the bundle; a problem leaves it as it is. */
  async #target(file: LoadedFile, reference: string, path: Path): Promise<string> {
    const hash = reference.indexOf('#')
    const filePart = hash === -1 ? reference : reference.slice(0, hash)
    const pointer = hash === -1 ? '' : reference.slice(hash + 1)
    const report = (message: string): string => {
      this.problems.push(problemAt(file.source, path, `The reference \`${reference}\` ${message}.`))
      return reference
    }
    if (pointer !== '' && !pointer.startsWith('/')) return report('has a fragment that is no JSON pointer')
    const problem = addressProblem(filePart)
    if (problem !== null) return report(problem)
    const target = filePart === '' ? file : await this.#load(file, decodeURIComponent(filePart), report)
    if (target === null) return reference
    return target.key === null ? `#${pointer}` : `#/${this.#extensionKey}/${target.key}${pointer}`
  }

  async #load(from: LoadedFile, name: string, report: (message: string) => string): Promise<LoadedFile | null> {
    const fail = (message: string): null => {
      report(message)
      return null
    }
    if (this.#root === null) return fail('names a file; the document must hold what it refers to')
    const { directory: root, files } = this.#root
    let real: string
    try {
      real = await files.realPath(join(from.directory, name))
    } catch {
      return fail('names a file that does not exist')
    }
    if (!real.startsWith(`${root}${root.endsWith(sep) ? '' : sep}`)) {
      return fail("leads out of the document's own directory")
    }
    const known = this.#files.get(real)
    if (known !== undefined) return known
    if (this.#files.size >= MAX_FILES) return fail(`is one too many: a document may have ${MAX_FILES} files`)
    const read = await files.read(real, FILE_MAX_BYTES)
    if (!read.ok) return fail(`names a file that ${read.reason}`)
    this.#bytes += read.text.length
    if (this.#bytes > TOTAL_MAX_BYTES) return fail('makes the document too large')
    const inside = relative(root, real)
    const parsed = parseYaml(join(dirname(this.#mainFile()), inside), read.text)
    if (!parsed.ok) {
      this.problems.push(...parsed.problems)
      return null
    }
    const key = `${this.#files.size}-${inside.replaceAll(/[^A-Za-z0-9._-]/g, '_')}`
    const file = { key, source: parsed.source, directory: dirname(real), value: parsed.source.value }
    this.#add(real, file)
    return file
  }

  #mainFile(): string {
    return [...this.#files.values()][0]?.source.file ?? ''
  }
}

function freeKey(root: JsonObject): string {
  let key = 'x-bundled-files'
  for (let number = 2; Object.hasOwn(root, key); number += 1) key = `x-bundled-files-${number}`
  return key
}

function addressProblem(filePart: string): string | null {
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(filePart) || filePart.startsWith('//')) {
    return "is an address; only files of the document's own directory are read"
  }
  if (filePart.startsWith('/')) return "is an absolute path; only files of the document's own directory are read"
  if (/[\\?]/.test(filePart) || /%(00|2f|5c)/i.test(filePart)) return 'is no relative path'
  try {
    return decodeURIComponent(filePart).includes('\u0000') ? 'is no relative path' : null
  } catch {
    return 'is no relative path'
  }
}
