import { sql } from 'kysely'
import type { Context } from './context.ts'
import { InvalidInputError, KeymeshError } from './domain/errors.ts'
import { addKey, type KeyRing, newKey, promoteKey, removeKey } from './secrets/key-ring.ts'
import { readKeyRingFile, writeKeyRingFile } from './secrets/key-ring-file.ts'
import { type ResealOptions, type ResealOutcome, resealAll } from './secrets/rotate.ts'
import { kidOf } from './secrets/seal.ts'
import type { Database } from './store/database.ts'
import { createSealedRows } from './store/sealed-rows.ts'

type KeyContext = Pick<Context, 'db' | 'sealer' | 'keyRing' | 'keyRingFile'>

export interface KeyInUse {
  readonly kid: string
  /** `missing`: secrets are sealed with it and the ring lacks it. */
  readonly role: 'current' | 'opens only' | 'missing'
  readonly secrets: number
}

export interface ResealReport extends ResealOutcome {
  /** Of the key that seals now. */
  readonly kid: string
  /** The other keys of the ring. */
  readonly oldKids: readonly string[]
}

/** A new key as KEYMESH_KEYS takes it: shown to the operator, written nowhere. */
export function generateKey(): string {
  const { kid, key } = newKey()
  return `${kid}:${key.export().toString('base64url')}`
}

const READ_BATCH = 500

export async function keysInUse(context: KeyContext): Promise<readonly KeyInUse[]> {
  const ring = await latestRing(context)
  const counts = await countByKey(context.db)
  const known = [...ring.keys.keys()].map((kid): KeyInUse => {
    return { kid, role: kid === ring.current ? 'current' : 'opens only', secrets: counts.get(kid) ?? 0 }
  })
  const missing = [...counts]
    .filter(([kid]) => !ring.keys.has(kid))
    .map(([kid, secrets]): KeyInUse => ({ kid, role: 'missing', secrets }))
  return [...known, ...missing]
}

/**
 * Reseals every secret under the current key. A ring file gets a new current key first, unless an earlier rotation is
 * unfinished: that one is finished instead. Old keys stay, as another process may have sealed with one just now.
 */
export async function rotateKeys(context: KeyContext, options: ResealOptions): Promise<ResealReport> {
  return await withRotationLock(context.db, async () => {
    if (context.keyRingFile !== null && !(await isUnfinished(context))) {
      const { kid, key } = newKey()
      const added = addKey(await latestRing(context), kid, key)
      // Two writes: whoever sees the new key seal can open what it sealed.
      await writeKeyRingFile(context.keyRingFile, added)
      await writeKeyRingFile(context.keyRingFile, promoteKey(added, kid))
    }
    const outcome = await resealAll(createSealedRows(context.db), context.sealer, options)
    const ring = await latestRing(context)
    return { ...outcome, kid: ring.current, oldKids: [...ring.keys.keys()].filter((kid) => kid !== ring.current) }
  })
}

/** Takes a key that seals nothing out of the ring file; writers wait while that is looked at. */
export async function removeOldKey(context: KeyContext, kid: string): Promise<void> {
  const { db, keyRingFile } = context
  if (keyRingFile === null) {
    throw new KeymeshError({
      code: 'KEY_RING_CHANGE_REFUSED',
      fate: 'stop',
      message: 'The key ring comes from KEYMESH_KEYS, which this command cannot change.',
      hint: `Once \`keymesh keys list\` shows no secret for ${kid}, take it out of KEYMESH_KEYS on every replica.`,
    })
  }
  await withRotationLock(db, async () => {
    const ring = await latestRing(context)
    if (!ring.keys.has(kid)) {
      throw new InvalidInputError('The command line', [{ message: `there is no key ${kid} in the key ring` }])
    }
    const shortened = removeKey(ring, kid)
    await db.transaction().execute(async (trx) => {
      await sql`lock table brokers, credentials, webhooks, notification_endpoints in share mode`.execute(trx)
      const secrets = (await countByKey(trx)).get(kid) ?? 0
      if (secrets > 0) throw stillInUse(kid, secrets)
      await writeKeyRingFile(keyRingFile, shortened)
    })
  })
}

function stillInUse(kid: string, secrets: number): KeymeshError {
  return new KeymeshError({
    code: 'KEY_IN_USE',
    fate: 'stop',
    message: `Key ${kid} still opens ${secrets} secret${secrets === 1 ? '' : 's'}; it stays in the ring.`,
    hint: 'Run `keymesh keys rotate` first.',
  })
}

/** The ring may have been changed by another process since the context was opened. */
async function latestRing({ keyRing, keyRingFile }: KeyContext): Promise<KeyRing> {
  return keyRingFile === null ? keyRing : ((await readKeyRingFile(keyRingFile)) ?? keyRing)
}

async function isUnfinished(context: KeyContext): Promise<boolean> {
  return (await keysInUse(context)).some(({ role, secrets }) => role === 'opens only' && secrets > 0)
}

/** How many secrets each key seals, by its id. */
export async function countByKey(db: Database): Promise<ReadonlyMap<string, number>> {
  const rows = createSealedRows(db)
  const counts = new Map<string, number>()
  let afterKey: string | null = null
  for (;;) {
    const batch: Awaited<ReturnType<typeof rows.next>> = await rows.next(afterKey, READ_BATCH)
    for (const { sealed } of batch) {
      const kid = kidOf(sealed) ?? '(unreadable)'
      counts.set(kid, (counts.get(kid) ?? 0) + 1)
    }
    afterKey = batch.at(-1)?.key ?? afterKey
    if (batch.length < READ_BATCH) return counts
  }
}

/** Two rotations at once would lose each other's key. */
async function withRotationLock<Result>(db: Database, work: () => Promise<Result>): Promise<Result> {
  const lock = sql`hashtextextended('keymesh keys', 0)`
  return await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ locked: boolean }>`select pg_try_advisory_lock(${lock}) as locked`.execute(connection)
    if (rows[0]?.locked !== true) {
      throw new KeymeshError({
        code: 'KEYS_BUSY',
        fate: 'retry',
        message: 'Another command is changing the key ring.',
        hint: 'Wait until it is done and try again.',
      })
    }
    try {
      return await work()
    } finally {
      await sql`select pg_advisory_unlock(${lock})`.execute(connection)
    }
  })
}
