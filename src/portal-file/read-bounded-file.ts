import { open } from 'node:fs/promises'

/** The reason of a failure follows the file's name. */
export type BoundedText = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

/** Reads a regular file of at most `maxBytes` as UTF-8. */
export async function readBoundedFile(path: string, maxBytes: number): Promise<BoundedText> {
  try {
    await using handle = await open(path, 'r')
    const facts = await handle.stat()
    if (!facts.isFile()) return { ok: false, reason: 'is not a file' }
    if (facts.size > maxBytes) return { ok: false, reason: `has ${facts.size} bytes, ${maxBytes} are allowed` }
    const buffer = Buffer.alloc(facts.size)
    const { bytesRead } = await handle.read(buffer, 0, facts.size, 0)
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(buffer.subarray(0, bytesRead)) }
  } catch (error) {
    return { ok: false, reason: reasonOf(error) }
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'does not exist'
  if (code === 'EACCES') return 'may not be read'
  if (code === 'EISDIR') return 'is not a file'
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not UTF-8 text'
  return `cannot be read (${String(code ?? error)})`
}
