import type { Config } from '../config.ts'
import { countByKey } from '../key-rotation.ts'
import { type KeyRing, parseKeyRing } from '../secrets/key-ring.ts'
import { keyRingPath, readKeyRingFile } from '../secrets/key-ring-file.ts'
import type { Database } from '../store/database.ts'
import { type Finding, failed, ok, problem, skipped, warning } from './finding.ts'

export interface KeyRingLook {
  readonly finding: Finding
  /** Null when there is none to be had. */
  readonly ring: KeyRing | null
}

const CHECK = 'key ring'

/** Where it is read from, and whether only its owner can. */
export async function checkKeyRing({ keys, databaseUrl, dataDirectory }: Config): Promise<KeyRingLook> {
  const path = keyRingPath(dataDirectory)
  try {
    if (keys !== null) {
      const ring = parseKeyRing(keys, 'KEYMESH_KEYS')
      return { finding: ok(CHECK, `KEYMESH_KEYS holds ${describe(ring)}.`), ring }
    }
    if (databaseUrl !== null) {
      return { finding: skipped(CHECK, 'KEYMESH_KEYS is not set, as the settings say.'), ring: null }
    }
    const ring = await readKeyRingFile(path)
    if (ring !== null) {
      return { finding: ok(CHECK, `${path} holds ${describe(ring)}, and only its owner may read it.`), ring }
    }
    return { finding: warning(CHECK, `There is no ${path} yet.`, MADE_AT_START), ring: null }
  } catch (error) {
    return { finding: failed(CHECK, error, `Restore ${path} from a backup.`), ring: null }
  }
}

const MADE_AT_START =
  'When nothing is stored yet the first start makes it; otherwise restore it from a backup. Back it up apart from the database.'

const describe = ({ keys, current }: KeyRing): string =>
  `${keys.size} key${keys.size === 1 ? '' : 's'}; ${current} seals`

/** Every key that a stored secret is sealed with must be in the ring. */
export async function checkSealedRows(db: Database, ring: KeyRing | null): Promise<Finding> {
  const check = 'sealed secrets'
  const counts = await countByKey(db)
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  if (total === 0) return ok(check, 'No secret is stored yet.')
  const missing = [...counts].filter(([kid]) => ring?.keys.has(kid) !== true)
  if (missing.length > 0) {
    const list = missing.map(([kid, count]) => `${kid} (${count})`).join(', ')
    return problem(
      check,
      `Of ${total} secrets, some are sealed with keys that the ring lacks: ${list}.`,
      'Put those keys back, from a backup or another replica: without them the secrets cannot be opened.',
    )
  }
  const old = [...counts].filter(([kid]) => kid !== ring?.current).reduce((sum, [, count]) => sum + count, 0)
  if (old > 0) {
    return warning(check, `${old} of ${total} secrets are still sealed with an old key.`, 'Run keymesh keys rotate.')
  }
  return ok(check, `All ${total} are sealed with the current key.`)
}
