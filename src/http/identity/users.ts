import { z } from 'zod'
import { USER_ROLES } from '../../domain/permissions.ts'
import { notFound } from '../../domain/refusals.ts'
import { Secret } from '../../domain/secret.ts'
import { addMember, createUser, removeMember, setPassword, setRoles } from '../../store/users-changes.ts'
import { listMembers, type MemberView, memberRevision, readMember } from '../../store/users-view.ts'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { ifMatch, setEtag } from '../etag.ts'
import { noContent } from '../openapi.ts'
import { limitOf, listOf, one, oneOf, paginate, sortedPage } from '../pagination.ts'
import { requireAdministratorUser } from '../permissions.ts'
import { epochMs, IDENTITY, nameParameter, newPassword, roles, userName } from './identity-schemas.ts'

const shown = {
  id: z.string(),
  name: z.string(),
  roles: z.array(z.enum(USER_ROLES)).describe('In this account.'),
  createdTime: epochMs,
} as const
const user = z.strictObject(shown)
const newUser = z.strictObject({
  ...shown,
  password: z.string().optional().describe('Shown once, when none was given.'),
})

const USERS = '/api/v0/users'
const params = z.strictObject({ userName: nameParameter })
const sorted = z.strictObject(sortedPage(['name', 'createdTime']))
const GENERATED_PASSWORD_LENGTH = 24

/** Users of the account, for its administrators with a user token: a leaked API token makes no users. */
export async function userRoutes(app: App, dependencies: HttpDependencies): Promise<void> {
  const { db } = dependencies
  const access = requireAdministratorUser()
  addUserRoutes(app, dependencies)
  app.get(
    USERS,
    {
      config: { access },
      schema: { tags: IDENTITY, summary: 'List users', querystring: sorted, response: { 200: listOf(user) } },
    },
    async ({ principal, query }) => {
      const { members, count } = await listMembers(db, principal.accountId, {
        ...limitOf(query),
        sortBy: query.sortFieldName ?? 'name',
        descending: query.sortDirection === 'desc',
      })
      return paginate(query, members.map(shownOf), count)
    },
  )
  app.get(
    `${USERS}/:userName`,
    {
      config: { access },
      schema: { tags: IDENTITY, summary: 'Read a user', params, response: { 200: oneOf(user) } },
    },
    async ({ principal, params }, reply) => {
      const member = await knownMember(dependencies, principal.accountId, params.userName)
      setEtag(reply, memberRevision(member))
      return one(shownOf(member))
    },
  )
  app.patch(
    `${USERS}/:userName`,
    {
      config: { access, audit: 'user.setRoles' },
      schema: {
        tags: IDENTITY,
        summary: 'Change the roles of a user',
        params,
        body: z.strictObject({ roles }),
        response: { 200: oneOf(user) },
      },
    },
    async ({ principal, params, body, headers }, reply) => {
      const member = { accountId: principal.accountId, userName: params.userName }
      await setRoles(db, member, body.roles, ifMatch(headers['if-match'], 'user', params.userName))
      const changed = await knownMember(dependencies, principal.accountId, params.userName)
      setEtag(reply, memberRevision(changed))
      return one(shownOf(changed))
    },
  )
  app.delete(
    `${USERS}/:userName`,
    {
      config: { access, audit: 'user.remove' },
      schema: { tags: IDENTITY, summary: 'Remove a user from the account', params, response: { 204: noContent } },
    },
    async ({ principal, params, headers }, reply) => {
      const member = { accountId: principal.accountId, userName: params.userName }
      await removeMember(db, member, ifMatch(headers['if-match'], 'user', params.userName))
      return reply.code(204).send()
    },
  )
}

function addUserRoutes(app: App, dependencies: HttpDependencies): void {
  const { db, passwords, random } = dependencies
  const access = requireAdministratorUser()
  app.post(
    USERS,
    {
      config: { access, audit: 'user.create' },
      schema: {
        tags: IDENTITY,
        summary: 'Create a user',
        body: z.strictObject({ name: userName, roles, password: newPassword.optional() }),
        response: { 201: oneOf(newUser) },
      },
    },
    async (request, reply) => {
      const { name, roles, password } = request.body
      const { accountId } = request.principal
      request.auditSubject = name
      const secret = new Secret(password ?? random.token(GENERATED_PASSWORD_LENGTH))
      const passwordHash = await passwords.hash(secret)
      await createUser(db, { id: random.token(11), name, passwordHash, accountId, roles })
      const created = shownOf(await knownMember(dependencies, accountId, name))
      return reply.code(201).send(one(password === undefined ? { ...created, password: secret.reveal() } : created))
    },
  )
  app.put(
    `${USERS}/:userName`,
    {
      config: { access, audit: 'user.add' },
      schema: {
        tags: IDENTITY,
        summary: 'Add a user of another account',
        description: 'Whoever adds must administer every account that the user belongs to.',
        params,
        body: z.strictObject({ roles }),
        response: { 200: oneOf(user) },
      },
    },
    async ({ principal, params, body }) => {
      const member = { accountId: principal.accountId, userName: params.userName }
      await addMember(db, member, body.roles, principal)
      return one(shownOf(await knownMember(dependencies, principal.accountId, params.userName)))
    },
  )
  app.put(
    `${USERS}/:userName/password`,
    {
      config: { access, audit: 'user.setPassword' },
      schema: {
        tags: IDENTITY,
        summary: 'Set the password of a user',
        description: 'Ends every user token of the user. Whoever sets it must administer every account of the user.',
        params,
        body: z.strictObject({ password: newPassword }),
        response: { 204: noContent },
      },
    },
    async ({ principal, params, body }, reply) => {
      const passwordHash = await passwords.hash(new Secret(body.password))
      const member = { accountId: principal.accountId, userName: params.userName }
      await setPassword(db, member, passwordHash, principal)
      return reply.code(204).send()
    },
  )
}

async function knownMember({ db }: HttpDependencies, accountId: string, name: string): Promise<MemberView> {
  const member = await readMember(db, accountId, name)
  if (member === null) throw notFound('user', name)
  return member
}

const shownOf = ({ id, name, roles, createdAtMs }: MemberView) => ({
  id,
  name,
  roles: [...roles],
  createdTime: createdAtMs,
})
