import { stat } from 'node:fs/promises'
import type { KeyRing } from './key-ring.ts'
import { readKeyRingFile } from './key-ring-file.ts'

/**
 * The ring in its file as it is at each call: another process rotates keys while this one runs. Asked of the file system
 * each time, as changes are rare and a look is cheap. The same object until the file changes.
 */
export function followKeyRing(path: string, ring: KeyRing): () => Promise<KeyRing> {
  let latest = ring
  let known = ''
  return async () => {
    const { ino, mtimeMs } = await stat(path)
    // A rotation writes two files, maybe within one tick of the file system's clock.
    const found = `${ino} ${mtimeMs}`
    if (found !== known) {
      latest = (await readKeyRingFile(path)) ?? latest
      known = found
    }
    return latest
  }
}
