import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { brokerId } from '../../src/domain/ids.ts'
import { keysInUse, removeOldKey, rotateKeys } from '../../src/key-rotation.ts'
import { createFollowingSealer } from '../../src/secrets/following-sealer.ts'
import { newKeyRing } from '../../src/secrets/key-ring.ts'
import { keyRingPath, writeKeyRingFile } from '../../src/secrets/key-ring-file.ts'
import { ensureAccount } from '../../src/store/accounts.ts'
import { type OpenDatabase, openDatabase } from '../../src/store/database.ts'
import { explainBrokerUse, explainProduct } from '../../src/store/explain-product.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { createSealedRows } from '../../src/store/sealed-rows.ts'
import type { Sealer } from '../../src/store/sealer-port.ts'
import { withDatabase } from '../helpers/database.ts'
import {
  broker,
  portalFile,
  product,
  productVersion,
  registration,
  suppliedCredential,
  testSealer,
} from './import-fixtures.ts'

const database = withDatabase()
let open: OpenDatabase

beforeAll(() => {
  open = openDatabase({
    connectionString: database().connectionString,
    maxConnections: 4,
    onIdleError: () => undefined,
  })
})
afterAll(() => open.close())

let accounts = 0
async function imported(file: Parameters<typeof importPortalFile>[2], sealer: Sealer = testSealer()): Promise<string> {
  accounts += 1
  const account = await ensureAccount(open.db, `account-${accounts}`)
  await importPortalFile({ db: open.db, sealer, random: cryptoRandom, nowMs: Date.now }, account, file)
  return account
}

beforeEach(async () => {
  await open.db.updateTable('brokers').set({ management_address: null }).execute()
})

describe('explain', () => {
  it('says per version which rule fails, and why a broker is unusable', async () => {
    const account = await imported(
      portalFile({
        brokers: [
          broker('broker-1'),
          broker('broker-2', { eventMeshId: null, management: null, managementPassword: null }),
        ],
        products: [
          product('orders', {
            shared: false,
            versions: [
              productVersion(),
              productVersion({
                version: '2.0.0',
                state: 'DRAFT',
                plans: [],
                brokers: [brokerId('broker-2')],
                public: false,
              }),
            ],
          }),
        ],
      }),
    )
    const explained = await explainProduct(open.db, account, 'orders')
    const failed = explained?.versions.map(({ version, visible, rules, brokers }) => ({
      version,
      visible,
      failed: rules.filter(({ holds }) => !holds).map(({ rule }) => rule),
      brokers: brokers.map(({ id, usable }) => [id, usable]),
    }))
    expect(failed).toEqual([
      {
        version: '2.0.0',
        visible: false,
        failed: ['shared', 'released', 'associated', 'has-plan', 'public'],
        brokers: [['broker-2', false]],
      },
      { version: '1.0.0', visible: false, failed: ['shared'], brokers: [['broker-1', true]] },
    ])
    const use = await explainBrokerUse(open.db, account, 'broker-2')
    expect(use?.rules.filter(({ holds }) => !holds).map(({ rule }) => rule)).toEqual([
      'modelled-mesh',
      'management-complete',
    ])
  })

  it('knows nothing of other accounts', async () => {
    await imported(portalFile())
    const other = await ensureAccount(open.db, 'a-stranger')
    expect(await explainProduct(open.db, other, 'orders')).toBeNull()
    expect(await explainBrokerUse(open.db, other, 'broker-1')).toBeNull()
  })
})

describe('sealed rows', () => {
  it('come in batches, each once, of every account, and are replaced only while they are the same', async () => {
    const file = portalFile({ registrations: ['app-1', 'app-2', 'app-3'].map((id) => registration(id)) })
    await imported(file)
    await open.db.updateTable('brokers').set({ management_address: null }).execute()
    await imported(file)
    const rows = createSealedRows(open.db)
    const all = await rows.next(null, 1000)
    const seen = []
    for (let afterKey: string | null = null; ; ) {
      const batch = await rows.next(afterKey, 3)
      seen.push(...batch)
      if (batch.length < 3) break
      afterKey = batch.at(-1)?.key ?? null
    }
    expect(seen).toEqual(all)
    expect(new Set(all.map(({ key }) => key)).size).toBe(all.length)
    const { secrets } = await open.db
      .selectFrom('credentials')
      .select((eb) => eb.fn.countAll<number>().as('secrets'))
      .executeTakeFirstOrThrow()
    const passwords = all.filter(({ place }) => place.table === 'brokers')
    expect(all.length - passwords.length).toBe(secrets)
    expect(passwords.length).toBeGreaterThanOrEqual(4)

    for (const row of [all[0], all.at(-1)]) {
      if (row === undefined) throw new Error('there are rows')
      expect(await rows.replace(row, 'something else', 'new')).toBe(false)
      expect(await rows.replace(row, row.sealed, row.sealed)).toBe(true)
    }
  })
})

describe('key rotation with a ring file', () => {
  let directory: string
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'keymesh-keys-'))
    await open.db.deleteFrom('credentials').execute()
    await open.db.updateTable('brokers').set({ management_password: null }).execute()
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  it('makes a new key, reseals, and lets the old one go only when nothing needs it', async () => {
    const keyRingFile = keyRingPath(directory)
    const keyRing = newKeyRing()
    await writeKeyRingFile(keyRingFile, keyRing)
    const sealer = createFollowingSealer(keyRingFile, keyRing)
    const context = { db: open.db, sealer, keyRing, keyRingFile }
    const file = portalFile({
      registrations: [
        registration('app-1', { credentials: [suppliedCredential('main', 'my-own-key', 'my-own-secret')] }),
      ],
    })
    const account = await imported(file, sealer)
    expect(await keysInUse(context)).toEqual([{ kid: keyRing.current, role: 'current', secrets: 3 }])

    const report = await rotateKeys(context, {})
    expect(report).toMatchObject({ resealed: 3, complete: true, unreadableCount: 0, oldKids: [keyRing.current] })
    expect(report.kid).not.toBe(keyRing.current)
    expect(await keysInUse(context)).toEqual([
      { kid: keyRing.current, role: 'opens only', secrets: 0 },
      { kid: report.kid, role: 'current', secrets: 3 },
    ])

    await expect(removeOldKey(context, report.kid)).rejects.toMatchObject({ code: 'KEY_RING_CHANGE_REFUSED' })
    await removeOldKey(context, keyRing.current)
    expect(await keysInUse(context)).toEqual([{ kid: report.kid, role: 'current', secrets: 3 }])
    const importing = { db: open.db, sealer, random: cryptoRandom, nowMs: Date.now }
    expect((await importPortalFile(importing, account, file)).changes).toEqual([])
  })

  it('that was cut short is finished with the key it made', async () => {
    const keyRingFile = keyRingPath(directory)
    const keyRing = newKeyRing()
    await writeKeyRingFile(keyRingFile, keyRing)
    const sealer = createFollowingSealer(keyRingFile, keyRing)
    const context = { db: open.db, sealer, keyRing, keyRingFile }
    await imported(portalFile({ registrations: [registration('app-1')] }), sealer)
    await expect(rotateKeys(context, { signal: AbortSignal.abort() })).rejects.toThrow()
    const before = await keysInUse(context)
    expect(before).toMatchObject([
      { role: 'opens only', secrets: 3 },
      { role: 'current', secrets: 0 },
    ])
    await expect(removeOldKey(context, keyRing.current)).rejects.toMatchObject({ code: 'KEY_IN_USE' })
    const report = await rotateKeys(context, {})
    expect(report).toMatchObject({ kid: before[1]?.kid, resealed: 3, complete: true })
  })

  it('by two commands at once is done by one', async () => {
    const keyRingFile = keyRingPath(directory)
    const keyRing = newKeyRing()
    await writeKeyRingFile(keyRingFile, keyRing)
    const context = { db: open.db, sealer: createFollowingSealer(keyRingFile, keyRing), keyRing, keyRingFile }
    await imported(portalFile({ registrations: [registration('app-1')] }), context.sealer)
    const results = await Promise.allSettled([rotateKeys(context, {}), rotateKeys(context, {})])
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    expect(refused).toMatchObject([{ code: 'KEYS_BUSY' }])
    expect(await keysInUse(context)).toHaveLength(2)
  })
})
