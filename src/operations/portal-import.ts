import type { Problem } from '../domain/errors.ts'
import type { PortalFile } from '../domain/portal-file.ts'
import type { Secret } from '../domain/secret.ts'
import { type ReadFiles, RecordingFiles, sentFiles } from '../portal-file/file-source.ts'
import { parsePortalFile } from '../portal-file/parse-portal-file.ts'
import type { ImportChange } from '../store/import-changes.ts'

/** A portal file as it was read, and all that is needed to read it again on another host. */
export interface ReadPortal {
  readonly file: PortalFile
  readonly source: PortalSource
}

export interface PortalSource extends ReadFiles {
  readonly path: string
  /** Values of the environment variables that the file names. */
  readonly secrets: ReadonlyMap<string, Secret>
}

export interface ImportRequest {
  readonly portal: ReadPortal
  readonly dryRun: boolean
  /** Also removes what the file does not hold. */
  readonly prune: boolean
  /** The number of deletions that a person agreed to. */
  readonly confirmedDeletions?: number
}

/** The last one is `done`. */
export type ImportEvent =
  | { readonly type: 'progress'; readonly phase: 'comparing' | 'writing' }
  | ({ readonly type: 'done' } & ImportOutcome)

export interface ImportOutcome {
  readonly changes: readonly ImportChange[]
  readonly warnings: readonly Problem[]
  /** Registrations to reconcile; in a dry run none. */
  readonly raised: readonly string[]
}

/** From the disk of this host. Throws InvalidInputError with every problem. */
export async function readPortal(path: string, secretOf: (name: string) => Secret | null): Promise<ReadPortal> {
  const files = new RecordingFiles()
  const secrets = new Map<string, Secret>()
  const env = (name: string): string | undefined => {
    const secret = secretOf(name)
    if (secret !== null) secrets.set(name, secret)
    return secret?.reveal()
  }
  const file = await parsePortalFile(path, { env, files })
  return { file, source: { path, texts: files.texts, realPaths: files.realPaths, secrets } }
}

/** The same from what another host read: no file and no environment variable of this one is looked at. */
export async function readPortalAgain(source: PortalSource): Promise<ReadPortal> {
  const env = (name: string): string | undefined => source.secrets.get(name)?.reveal()
  return { file: await parsePortalFile(source.path, { env, files: sentFiles(source) }), source }
}
