import type { PortalSource, ReadPortal } from '../domain/portal-file.ts'
import type { Secret } from '../domain/secret.ts'
import { RecordingFiles, sentFiles } from './file-source.ts'
import { parsePortalFile } from './parse-portal-file.ts'

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
