import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RemoteCatalogue } from '../../src/domain/remote-catalogue.ts'
import { beginPass, readRemoteStatus, stopFollowing } from '../../src/store/followed-catalogues.ts'
import { importPortalFile } from '../../src/store/import-portal-file.ts'
import { importRemoteCatalogue } from '../../src/store/import-remote.ts'
import { cryptoRandom } from '../../src/store/random-source.ts'
import { type Fault, refusing } from '../helpers/http-front.ts'
import { emptyPortalFile } from '../helpers/mesh.ts'
import { broker, registration } from './import-fixtures.ts'
import { client, givenSecretOf, keyOf } from './reconcile-fixtures.ts'
import { type FollowedRemote, ordersRemote, type RemoteOptions, withFollowedRemote } from './remote-fixtures.ts'

const CLIENTS = ['first', 'second', 'third'].map((id) => client(id))
const ALIVE = new AbortController().signal

const following = (options: Partial<RemoteOptions> = {}): Promise<FollowedRemote> =>
  withFollowedRemote({ portal: (brokers) => ordersRemote(brokers, CLIENTS), ...options })

const working = ({ mesh }: FollowedRemote): readonly string[] =>
  CLIENTS.map(({ id }) => id as string).filter(
    (id) => mesh.broker().state.checkLogin(keyOf(id), givenSecretOf(id)) === 'accepted',
  )
const ALL = ['first', 'second', 'third']

async function statusOf({ mesh }: FollowedRemote) {
  const found = await readRemoteStatus(mesh.context.db, mesh.context.accountId)
  if (found === null) throw new Error('there is no status')
  return found
}

const elsewhere: Fault = ({ path }, response) => {
  if (!path.endsWith('/gateways')) return false
  response.writeHead(302, { location: 'https://elsewhere.example/' }).end()
  return true
}

describe('a remote catalogue that cannot be read', { timeout: 120_000 }, () => {
  let followed: FollowedRemote
  let log = ''

  beforeAll(async () => {
    const lines = {
      write: (line: string) => {
        log += line
      },
    }
    followed = await following({ mesh: { log: pino({ level: 'info' }, lines) } })
    await followed.follow()
    await followed.call('DELETE', 'appRegistrations/first')
  }, 120_000)
  afterAll(() => followed[Symbol.asyncDispose]())

  it.each<[sentence: string, fault: Fault, code: string]>([
    ['it refuses a part', refusing('/appRegistrations', 403), 'REMOTE_FORBIDDEN'],
    ['something else is in its place', refusing('/eventApiProducts', 404), 'REMOTE_NOT_FOUND'],
    ['it does not know the token', refusing('/eventApiProducts', 401), 'REMOTE_NOT_AUTHENTICATED'],
    ['it sends elsewhere', elsewhere, 'REMOTE_REDIRECTS'],
  ])('changes nothing when %s, and says so', async (_sentence, fault, code) => {
    log = ''
    followed.front.failWith(fault)
    expect(await followed.follower.poll(ALIVE)).toBe(false)
    expect(await statusOf(followed)).toMatchObject({ errorCode: code, error: expect.stringContaining('/api/v2/apim/') })
    expect(log).toContain(`"event":"remote.failed","code":"${code}"`)
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(ALL)
  })

  it('is followed again when it can be read', async () => {
    log = ''
    followed.front.failWith(null)
    expect(await followed.follower.poll(ALIVE)).toBe(true)
    expect(await statusOf(followed)).toMatchObject({ errorCode: null, error: null })
    expect(log).toContain('"event":"remote.followed","created":0,"updated":0,"removed":1,"raised":1')
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(['second', 'third'])
  })

  it('says nothing of the remote when the process stops in the middle', async () => {
    const stopping = AbortSignal.abort(new Error('asked to stop'))
    await expect(followed.follower.poll(stopping)).rejects.toThrow('asked to stop')
    expect(await statusOf(followed)).toMatchObject({ error: null })
  })

  it('has told no secret', () => {
    const secrets = [followed.remote.token, ...CLIENTS.map(({ id }) => givenSecretOf(id))]
    expect(secrets.filter((secret) => log.includes(secret))).toEqual([])
  })
})

describe('a remote catalogue that looks wrong', { timeout: 120_000 }, () => {
  it('wipes nothing when it is empty, and is obeyed when a person agrees to the number', async () => {
    await using followed = await following()
    await followed.follow()
    await followed.change({ products: [], eventApis: [] }, { prune: true, confirmedDeletions: 5 })

    await expect(followed.follower.pull()).rejects.toMatchObject({
      code: 'MASS_DELETE_GUARD',
      message: expect.stringContaining('1 of 1 product objects, 3 of 3 registration objects'),
      hint: expect.stringContaining('keymesh pull --yes-prune 6'),
    })
    expect(await statusOf(followed)).toMatchObject({ errorCode: 'MASS_DELETE_GUARD' })
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(ALL)

    await expect(followed.follower.pull({ confirmedDeletions: 4 })).rejects.toMatchObject({ code: 'MASS_DELETE_GUARD' })
    const { changes } = await followed.follower.pull({ confirmedDeletions: 6 })
    expect(changes.filter(({ type }) => type === 'delete')).toHaveLength(6)
    expect(await statusOf(followed)).toMatchObject({ error: null })
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual([])
  })

  it('removes nothing of what the account had before, without being asked', async () => {
    await using followed = await following()
    const { db, sealer, accountId } = followed.mesh.context
    const own = {
      ...emptyPortalFile(followed.mesh.brokers),
      applicationDomains: [],
      registrations: ['own', 'first'].map((id) => registration(id, { accessRequests: [], credentials: [] })),
    }
    await importPortalFile({ db, sealer, random: cryptoRandom, nowMs: Date.now }, accountId, own)
    await expect(followed.follower.pull()).rejects.toMatchObject({
      code: 'MASS_DELETE_GUARD',
      hint: expect.stringContaining('did not follow it until now'),
    })
    await followed.follower.pull({ confirmedDeletions: 1 })
    expect((await statusOf(followed)).followedSinceMs).not.toBeNull()
  })

  it('is not written when a later pass was', async () => {
    await using followed = await following()
    const { db, sealer, accountId, now } = followed.mesh.context
    const slow = await beginPass(db, accountId, { origin: followed.url, atMs: now() })
    await followed.follow()
    const stale: RemoteCatalogue = {
      ...{ products: [], eventApis: [], applicationDomains: [], registrations: [], brokers: [] },
      ...{ unread: [], documents: [], warnings: [] },
    }
    const dependencies = { db, sealer, random: cryptoRandom, nowMs: now }
    const result = await importRemoteCatalogue(dependencies, accountId, stale, { origin: followed.url, pass: slow })
    expect(result).toMatchObject({ superseded: true, changes: [], raised: [] })
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(ALL)
  })
})

describe('brokers of an account that follows', { timeout: 120_000 }, () => {
  it('are reported when nobody manages them, and used once they are declared', async () => {
    await using followed = await following({ mesh: { brokers: 2 } })
    const [one, other] = followed.mesh.brokers
    if (one === undefined || other === undefined) throw new Error('the mesh has two brokers')
    await followed.mesh.import({ brokers: [one] }, { prune: true })
    const { unmanagedBrokers } = await followed.follower.pull()
    expect(unmanagedBrokers).toEqual([{ id: other.id, name: other.name }])
    expect(await statusOf(followed)).toMatchObject({ unmanagedBrokers, error: null })
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(ALL)

    await followed.mesh.import({ brokers: [one, other] })
    const { raised } = await followed.follower.pull()
    expect(raised.toSorted()).toEqual(ALL)
    await followed.mesh.sweepAll()
    expect(followed.mesh.broker(1).state.checkLogin(keyOf('first'), givenSecretOf('first'))).toBe('accepted')
    expect(await statusOf(followed)).toMatchObject({ unmanagedBrokers: [] })
    // Products of the remote are on it: it cannot go, whatever a file says.
    await expect(followed.mesh.import({ brokers: [one] }, { prune: true })).rejects.toThrow(
      /broker-2.* cannot be removed/,
    )
  })

  it('learn from the remote where clients connect, unless it is declared here', async () => {
    await using followed = await following()
    const { db } = followed.mesh.context
    const messaging = async () => (await db.selectFrom('brokers').select('messaging').executeTakeFirst())?.messaging
    const [declared] = followed.mesh.brokers
    if (declared === undefined) throw new Error('the mesh has a broker')
    const silent = { ...declared, messaging: null }
    await followed.mesh.import({ brokers: [silent] })
    await followed.follower.pull()
    expect(await messaging()).toEqual({ host: 'broker-1.example', protocols: [{ protocol: 'smfs', port: 55443 }] })
    // Another import of the same file is no news, and what changes there arrives here.
    expect((await followed.mesh.import({ brokers: [silent] })).changes).toEqual([])
    const moved = { host: 'moved.example', protocols: [{ protocol: 'mqtt', port: 1883 }] } as const
    await followed.change({ brokers: [broker('broker-1', { messaging: moved })] })
    await followed.follower.pull()
    expect(await messaging()).toEqual(moved)

    await followed.mesh.import({ brokers: [declared] })
    expect((await followed.follower.pull()).changes).toEqual([])
    expect(await messaging()).toEqual(declared.messaging)
  })

  it('stay when the account is its own again', async () => {
    await using followed = await following()
    await followed.follow()
    const { db, accountId } = followed.mesh.context
    expect(await stopFollowing(db, accountId)).toBe(true)
    expect(await stopFollowing(db, accountId)).toBe(false)
    await followed.mesh.sweepAll()
    expect(working(followed)).toEqual(ALL)
    await followed.mesh.import({ registrations: [client('own', { accessRequests: [] })] })
  })
})
