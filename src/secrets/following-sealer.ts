import { followKeyRing } from './following-key-ring.ts'
import type { KeyRing } from './key-ring.ts'
import { createSealer, type Sealer } from './seal.ts'

/** A sealer that follows its ring file: what is sealed or opened after a rotation uses the new ring. */
export function createFollowingSealer(path: string, ring: KeyRing): Sealer {
  const latestRing = followKeyRing(path, ring)
  let sealerRing = ring
  let sealer = createSealer(ring)

  const latest = async (): Promise<Sealer> => {
    const found = await latestRing()
    if (found !== sealerRing) {
      sealer = createSealer(found)
      sealerRing = found
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
