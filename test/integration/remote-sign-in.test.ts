import { describe, expect, it } from 'vitest'
import { TEST_PASSWORD } from '../helpers/http.ts'
import { client, givenSecretOf, keyOf } from './reconcile-fixtures.ts'
import { type FollowedRemote, ordersRemote, withFollowedRemote } from './remote-fixtures.ts'

const MINUTE_MS = 60_000

const signIn = (url: string): Readonly<Record<string, string>> => ({
  KEYMESH_AUTH_URL: url,
  KEYMESH_AUTH_USERNAME: 'admin',
  KEYMESH_AUTH_PASSWORD: TEST_PASSWORD,
  KEYMESH_AUTH_ACCOUNT: 'default',
})

/** Names of the API tokens that are not the test's own. */
async function tokenNames({ remote }: FollowedRemote): Promise<readonly string[]> {
  const rows = await remote.db.selectFrom('api_tokens').select(['name']).where('name', '<>', 'test').execute()
  return rows.map(({ name }) => name)
}

describe('a follower that signs in at the real service', { timeout: 120_000 }, () => {
  it('makes one API token, renews it before it ends and when it is refused, and takes it back', async () => {
    let clock = Date.now()
    const setClock = (followed: FollowedRemote, nowMs: number): void => {
      clock = nowMs
      followed.remote.setNow(nowMs)
    }
    await using followed = await withFollowedRemote({
      env: { KEYMESH_API_TOKEN_LIFETIME: '10m' },
      mesh: { now: () => clock },
      access: signIn,
      portal: (brokers) => ordersRemote(brokers, [client('first'), client('second')]),
    })
    setClock(followed, clock)
    await followed.follow()
    expect(followed.mesh.broker().state.checkLogin(keyOf('first'), givenSecretOf('first'))).toBe('accepted')
    const name = `keymesh ${followed.mesh.context.config.instance}`
    expect(await tokenNames(followed)).toEqual([name])
    const first = await followed.remote.db.selectFrom('api_tokens').select('id').where('name', '=', name).execute()

    setClock(followed, clock + 9.5 * MINUTE_MS)
    await followed.follower.pull()
    const renewed = await followed.remote.db.selectFrom('api_tokens').select('id').where('name', '=', name).execute()
    expect(renewed).toHaveLength(1)
    expect(renewed).not.toEqual(first)

    setClock(followed, clock + MINUTE_MS)
    await followed.remote.db.deleteFrom('api_tokens').where('name', '=', name).execute()
    await followed.follower.pull()
    expect(await tokenNames(followed)).toEqual([name])

    await followed.follower.close()
    expect(await tokenNames(followed)).toEqual([])
  })

  it('says that the sign-in was refused, and changes nothing', async () => {
    await using followed = await withFollowedRemote({
      access: (url) => ({ ...signIn(url), KEYMESH_AUTH_PASSWORD: 'another-password' }),
      portal: (brokers) => ordersRemote(brokers, [client('first')]),
    })
    await expect(followed.follower.pull()).rejects.toMatchObject({ code: 'REMOTE_SIGN_IN_REFUSED' })
    expect(await followed.mesh.pairs()).toEqual([])
  })
})
