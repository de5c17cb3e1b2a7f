import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleWorld, withConsole } from '../helpers/console.ts'
import { TEST_PASSWORD } from '../helpers/http.ts'

let world: ConsoleWorld
beforeAll(async () => {
  world = await withConsole()
}, 60_000)
afterAll(() => world[Symbol.asyncDispose]())

describe('the console', () => {
  it('shows the mesh to who is signed in, and sends others to the sign-in', async () => {
    expect((await world.page('/console')).html).toContain('<h1>Mesh')
    expect(await world.page('/console', null)).toMatchObject({ status: 303, headers: { location: '/console/sign-in' } })
  })

  it('signs in with a password', async () => {
    const answer = await world.post('/console/sign-in', { username: 'admin', password: TEST_PASSWORD }, null)
    expect(answer).toMatchObject({ status: 303, headers: { location: '/console' } })
    expect(String(answer.headers['set-cookie'])).toMatch(
      /^keymesh_session=[^;]+; Path=\/console; HttpOnly; SameSite=Strict$/,
    )
  })
})
