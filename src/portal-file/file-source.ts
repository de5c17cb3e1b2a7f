import { realpath } from 'node:fs/promises'
import type { PortalSource } from '../domain/portal-file.ts'
import { type BoundedText, readBoundedFile } from './read-bounded-file.ts'

/** Where a portal file and what it names are read from. */
export interface FileSource {
  /** Behind all links. Throws when there is no such file. */
  realPath(path: string): Promise<string>
  /** A regular file of at most so many bytes. */
  read(path: string, maxBytes: number): Promise<BoundedText>
}

export const DISK: FileSource = { realPath: realpath, read: readBoundedFile }

type ReadFiles = Pick<PortalSource, 'texts' | 'realPaths'>

/** Reads from the disk, and keeps what it read. */
export class RecordingFiles implements FileSource, ReadFiles {
  readonly texts = new Map<string, string>()
  readonly realPaths = new Map<string, string>()

  async realPath(path: string): Promise<string> {
    const found = await DISK.realPath(path)
    this.realPaths.set(path, found)
    return found
  }

  async read(path: string, maxBytes: number): Promise<BoundedText> {
    const found = await DISK.read(path, maxBytes)
    if (found.ok) this.texts.set(path, found.text)
    return found
  }
}

/** Reads what was sent, and nothing else: whatever a path says, no file of this machine. */
export function sentFiles({ texts, realPaths }: ReadFiles): FileSource {
  return {
    async realPath(path) {
      const found = realPaths.get(path)
      if (found === undefined) throw new Error('was not sent')
      return found
    },
    async read(path, maxBytes) {
      const text = texts.get(path)
      if (text === undefined) return { ok: false, reason: 'was not sent' }
      const bytes = Buffer.byteLength(text)
      return bytes > maxBytes
        ? { ok: false, reason: `has ${bytes} bytes, ${maxBytes} are allowed` }
        : { ok: true, text }
    },
  }
}
