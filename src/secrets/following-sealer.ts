import { stat } from 'node:fs/promises'
import type { KeyRing } from './key-ring.ts'
import { readKeyRingFile } from './key-ring-file.ts'
import { createSealer, type Sealer } from './seal.ts'

/**
 * A sealer that follows its ring file: another process rotates keys while this one runs, and what is sealed or opened
 * after that uses the new ring. Asked of the file system before each call, as changes are rare and a look is cheap.
 */
export function createFollowingSealer(path: string, ring: KeyRing): Sealer {
  let sealer = createSealer(ring)
  let readAtMtimeMs = Number.NaN

  const latest = async (): Promise<Sealer> => {
    const { mtimeMs } = await stat(path)
    if (mtimeMs !== readAtMtimeMs) {
      const found = await readKeyRingFile(path)
      if (found !== null) sealer = createSealer(found)
      readAtMtimeMs = mtimeMs
    }
    return sealer
  }

  return {
    get currentKid() {
      return sealer.currentKid
    },
    seal: async (secret, place) => (await latest()).seal(secret, place),
    open: async (sealed, place) => (await latest()).open(sealed, place),
    reseal: async (sealed, place) => (await latest()).reseal(sealed, place),
  }
}
