import { Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { InvalidInputError } from '../domain/errors.ts'
import { mayHoldTokens, USER_ROLES, type UserRole } from '../domain/permissions.ts'
import { Secret } from '../domain/secret.ts'
import { passwordProblem, userNameProblem } from '../domain/user-names.ts'
import { audit } from '../store/audit.ts'
import { cryptoRandom } from '../store/random-source.ts'
import { findUserByName } from '../store/users.ts'
import { addMember, createUser, removeMember, setPassword, setRoles } from '../store/users-changes.ts'
import { listMembers, type MemberView } from '../store/users-view.ts'
import type { CommandDependencies } from './command.ts'
import { GENERATED_PASSWORD_LENGTH, HOST } from './first-administrator.ts'
import { explained } from './help.ts'
import { type Output, table } from './output.ts'

export function usersCommand(dependencies: CommandDependencies): Command {
  const command = new Command('users')
    .description('who may sign in to the account of KEYMESH_ACCOUNT')
    .addCommand(listCommand(dependencies))
    .addCommand(addCommand(dependencies))
    .addCommand(removeCommand(dependencies))
    .addCommand(setPasswordCommand(dependencies))
    .addCommand(setRolesCommand(dependencies))
  return explained(command, {
    notes: `Whoever may run this on the host may do everything: it also recovers an administrator who lost the password.
Roles: ${USER_ROLES.join(', ')}. A user who is no administrator needs both of the others to get tokens.`,
    examples: ['keymesh users list', 'keymesh users add ada --roles administrator'],
    exit: { 0: 'done', 1: 'refused, unknown or failed' },
  })
}

function listCommand(dependencies: CommandDependencies): Command {
  const command = new Command('list')
    .description('show the users of the account and their roles')
    .option('--json', 'print one JSON document per user')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const members = await dependencies.withContext(allMembers)
      if (output.json) {
        for (const { name, roles, createdAtMs } of members) output.document({ name, roles, createdAtMs })
        return
      }
      const rows = members.map(({ name, roles }) => [name, roles.join(', '), mayHoldTokens(roles) ? 'yes' : 'no'])
      output.line(table(['user', 'roles', 'may get tokens'], rows, output.paint))
    })
  return explained(command, {
    examples: ['keymesh users list'],
    exit: { 0: 'the list was read', 1: 'it could not be read' },
  })
}

const LIST_PAGE = 500

async function allMembers({ db, accountId }: Context): Promise<readonly MemberView[]> {
  const all: MemberView[] = []
  for (;;) {
    const page = { limit: LIST_PAGE, offset: all.length, sortBy: 'name', descending: false } as const
    const { members } = await listMembers(db, accountId, page)
    all.push(...members)
    if (members.length < LIST_PAGE) return all
  }
}

interface PasswordOptions {
  readonly passwordEnv?: string
}

function addCommand(dependencies: CommandDependencies): Command {
  const command = new Command('add')
    .description('create a user, or add one of another account to this one')
    .argument('<name>', 'what the user signs in by')
    .requiredOption('--roles <roles>', `separated by commas: ${USER_ROLES.join(', ')}`, parseRoles)
    .option('--password-env <name>', 'the environment variable that holds the password; without it one is made')
    .option('--json', 'print one JSON document')
    .action(
      async (name: string, options: PasswordOptions & { readonly roles: readonly UserRole[] }, command: Command) => {
        const output = dependencies.output(command)
        const nameIs = userNameProblem(name)
        if (nameIs !== null) throw badArgument('name', nameIs)
        await dependencies.withContext(async (context) => {
          const { db, accountId } = context
          if ((await findUserByName(db, name)) !== null) {
            await addMember(db, { accountId, userName: name }, options.roles, 'host')
            await record(context, 'user.add', name)
            printDone(output, { user: name, added: true }, `User ${name} belongs to the account now.`)
            return
          }
          const { password, shown } = choosePassword(context, options)
          const passwordHash = await context.passwords.hash(password)
          await createUser(db, { id: cryptoRandom.token(11), name, passwordHash, accountId, roles: options.roles })
          await record(context, 'user.create', name)
          printDone(output, { user: name, created: true, ...shown }, `User ${name} was created.`)
        })
      },
    )
  return explained(command, {
    notes: 'A user of another account keeps the password. A password that is made is printed once.',
    examples: ['keymesh users add ada --roles service-management-editor,event-portal-manager'],
    exit: { 0: 'added', 1: 'the user belongs to the account already, or something failed' },
  })
}

function removeCommand(dependencies: CommandDependencies): Command {
  const command = new Command('remove')
    .description('remove a user from the account, with the API tokens; the last administrator stays')
    .argument('<name>', 'the user')
    .option('--json', 'print one JSON document')
    .action(async (name: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        await removeMember(context.db, { accountId: context.accountId, userName: name }, anyRevision)
        await record(context, 'user.remove', name)
      })
      printDone(output, { user: name, removed: true }, `User ${name} belongs to the account no more.`)
    })
  return explained(command, {
    examples: ['keymesh users remove ada'],
    exit: { 0: 'removed', 1: 'refused, unknown or failed' },
  })
}

function setPasswordCommand(dependencies: CommandDependencies): Command {
  const command = new Command('set-password')
    .description('give a user a new password; every user token of the user ends')
    .argument('<name>', 'the user')
    .option('--password-env <name>', 'the environment variable that holds the password; without it one is made')
    .option('--json', 'print one JSON document')
    .action(async (name: string, options: PasswordOptions, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        const { password, shown } = choosePassword(context, options)
        const passwordHash = await context.passwords.hash(password)
        await setPassword(context.db, { accountId: context.accountId, userName: name }, passwordHash, 'host')
        await record(context, 'user.setPassword', name)
        printDone(output, { user: name, changed: true, ...shown }, `User ${name} has a new password.`)
      })
    })
  return explained(command, {
    notes: 'A password that is made is printed once.',
    examples: ['keymesh users set-password ada', 'ADA=… keymesh users set-password ada --password-env ADA'],
    exit: { 0: 'set', 1: 'there is no such user, or something failed' },
  })
}

function setRolesCommand(dependencies: CommandDependencies): Command {
  const command = new Command('set-roles')
    .description('change what a user is in the account')
    .argument('<name>', 'the user')
    .requiredOption('--roles <roles>', `separated by commas: ${USER_ROLES.join(', ')}`, parseRoles)
    .option('--json', 'print one JSON document')
    .action(async (name: string, { roles }: { readonly roles: readonly UserRole[] }, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        await setRoles(context.db, { accountId: context.accountId, userName: name }, roles, anyRevision)
        await record(context, 'user.setRoles', name)
      })
      printDone(output, { user: name, roles }, `User ${name} is ${roles.join(', ')}.`)
    })
  return explained(command, {
    examples: ['keymesh users set-roles ada --roles administrator'],
    exit: { 0: 'set', 1: 'refused, unknown or failed' },
  })
}

const anyRevision = (): void => undefined

/** For commander. */
function parseRoles(text: string): readonly UserRole[] {
  const given = text.split(',').map((role) => role.trim())
  const unknown = given.filter((role) => !USER_ROLES.some((known) => known === role))
  if (unknown.length > 0) throw new InvalidArgumentError(`give ${USER_ROLES.join(', ')}, separated by commas`)
  return USER_ROLES.filter((role) => given.includes(role))
}

/** `shown` holds a password that was made, for the one time that it is printed. */
function choosePassword({ config }: Context, { passwordEnv }: PasswordOptions) {
  if (passwordEnv === undefined) {
    const made = cryptoRandom.token(GENERATED_PASSWORD_LENGTH)
    return { password: new Secret(made), shown: { password: made } }
  }
  const password = config.secretFromEnvironment(passwordEnv)
  if (password === null) throw badArgument('--password-env', `the environment variable ${passwordEnv} is not set`)
  const problem = passwordProblem(password.reveal())
  if (problem !== null) throw badArgument('--password-env', `the password ${problem}`)
  return { password, shown: {} }
}

const badArgument = (path: string, message: string) => new InvalidInputError('The command line', [{ path, message }])

async function record({ db, accountId, now }: Context, what: string, subject: string): Promise<void> {
  await audit(db, { atMs: now(), accountId, who: HOST, what, subject, outcome: 'done' })
}

function printDone(
  output: Output,
  document: { readonly user: string; readonly password?: string; readonly [field: string]: unknown },
  line: string,
): void {
  if (output.json) {
    output.document(document)
    return
  }
  output.line(line)
  if (document.password !== undefined) output.line(`Password, shown only now: ${document.password}`)
}
