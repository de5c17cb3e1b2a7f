import { Command, InvalidArgumentError } from 'commander'
import type { Context } from '../context.ts'
import { InvalidInputError } from '../domain/errors.ts'
import { NOTIFICATION_KINDS, type NotificationKind, receiverProblem } from '../domain/notifications.ts'
import { parseNetworks } from '../domain/refused-addresses.ts'
import { Secret } from '../domain/secret.ts'
import { changeEndpoint, createEndpoint, deleteEndpoint, rotateSigningSecret } from '../store/notification-endpoints.ts'
import { type EndpointView, listEndpoints } from '../store/notification-endpoints-view.ts'
import { cryptoRandom } from '../store/random-source.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { deliveriesCommand, resendCommand } from './notification-deliveries.ts'
import { placeOf, record, testCommand } from './notification-test.ts'
import { type Output, table } from './output.ts'

const MAX_SHOWN = 1000
const DEFAULT_OVERLAP_MS = 86_400_000

export function notificationsCommand(dependencies: CommandDependencies): Command {
  const command = new Command('notifications')
    .description('who is told of drift, brokers that are down, expiring credentials and waiting access requests')
    .addCommand(listCommand(dependencies))
    .addCommand(addCommand(dependencies))
    .addCommand(changeCommand(dependencies))
    .addCommand(removeCommand(dependencies))
    .addCommand(rotateCommand(dependencies))
    .addCommand(testCommand(dependencies))
    .addCommand(deliveriesCommand(dependencies))
    .addCommand(resendCommand(dependencies))
  return explained(command, {
    notes: `Kinds: ${NOTIFICATION_KINDS.join(', ')}.`,
    examples: [
      'keymesh notifications add pager --to https://hooks.example.org/keymesh --kinds broker.down,broker.back',
      'keymesh notifications test pager',
      'keymesh notifications deliveries --state dead',
    ],
    exit: { 0: 'done', 1: 'refused, unknown or failed' },
  })
}

function listCommand(dependencies: CommandDependencies): Command {
  const command = new Command('list')
    .description('show the endpoints of the account')
    .option('--json', 'print one JSON document per endpoint')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const { endpoints } = await dependencies.withContext(({ db, accountId }) =>
        listEndpoints(db, accountId, { limit: MAX_SHOWN, offset: 0 }),
      )
      if (output.json) {
        for (const each of endpoints) output.document(each)
        return
      }
      if (endpoints.length === 0) {
        output.line('Nobody is notified. `keymesh notifications add` adds an endpoint.')
        return
      }
      const rows = endpoints.map((each) => [
        each.name,
        each.address,
        each.kinds.length === NOTIFICATION_KINDS.length ? 'all' : each.kinds.join(', '),
        stateOf(each),
        String(each.pendingDeliveries),
        String(each.deadDeliveries),
      ])
      output.line(table(['endpoint', 'address', 'kinds', 'state', 'pending', 'dead'], rows, output.paint))
    })
  return explained(command, { examples: ['keymesh notifications list'], exit: { 0: 'listed', 1: 'it failed' } })
}

function stateOf({ enabled, disabledReason, failingSinceMs, lastError }: EndpointView): string {
  if (!enabled) return disabledReason === null ? 'off' : `off: ${disabledReason}`
  if (failingSinceMs === null) return 'on'
  return `failing since ${new Date(failingSinceMs).toISOString()}: ${lastError ?? ''}`
}

interface UrlOptions {
  readonly to?: string
  readonly toEnv?: string
}

interface EndpointOptions extends UrlOptions {
  readonly kinds?: readonly NotificationKind[]
}

const withUrl = (command: Command): Command =>
  command
    .option('--to <url>', 'where to post to')
    .option('--to-env <name>', 'the environment variable that holds the URL, when the URL holds a secret')
    .option('--kinds <kinds>', 'what is told, separated by commas; or all', parseKinds)

function addCommand(dependencies: CommandDependencies): Command {
  const command = withUrl(new Command('add'))
    .description('notify operators at a URL')
    .argument('<name>', 'how the endpoint is called')
    .option('--json', 'print one JSON document')
    .action(async (name: string, options: EndpointOptions, command: Command) => {
      const output = dependencies.output(command)
      const { view, signingSecret } = await dependencies.withContext(async (context) => {
        const url = urlOf(context, options)
        if (url === undefined) throw badArgument('--to', 'must be given, or --to-env')
        const kinds = options.kinds ?? NOTIFICATION_KINDS
        const created = await createEndpoint(writer(context), context.accountId, { name, url, kinds, enabled: true })
        await record(context, 'notificationEndpoint.create', name)
        return created
      })
      printSecret(output, view, signingSecret, `Endpoint ${view.name} was added.`)
    })
  return explained(command, {
    notes: `Posts are signed as Standard Webhooks describes. The secret is printed once.`,
    examples: [
      'keymesh notifications add pager --to https://hooks.example.org/keymesh',
      'keymesh notifications add chat --to-env CHAT_HOOK --kinds access-request.waiting',
    ],
    exit: { 0: 'added', 1: 'the account has the most endpoints it can have' },
  })
}

function changeCommand(dependencies: CommandDependencies): Command {
  const command = withUrl(new Command('change'))
    .description('change an endpoint; what is not given stays')
    .argument('<endpoint>', 'its name or id')
    .option('--name <name>', 'another name')
    .option('--on', 'switch it on')
    .option('--off', 'switch it off: what happens meanwhile is not told')
    .option('--json', 'print one JSON document')
    .action(async (idOrName: string, options: ChangeOptions, command: Command) => {
      const output = dependencies.output(command)
      if (options.on === true && options.off === true)
        throw badArgument('--on', 'stands beside --off; give one of them')
      const view = await dependencies.withContext(async (context) => {
        const place = await placeOf(context, idOrName)
        const url = urlOf(context, options)
        const changed = await changeEndpoint(
          writer(context),
          place,
          {
            ...(options.name === undefined ? {} : { name: options.name }),
            ...(url === undefined ? {} : { url }),
            ...(options.kinds === undefined ? {} : { kinds: options.kinds }),
            ...(options.on === true ? { enabled: true } : {}),
            ...(options.off === true ? { enabled: false } : {}),
          },
          anyRevision,
        )
        await record(context, 'notificationEndpoint.change', idOrName)
        return changed.view
      })
      output.line(`Endpoint ${view.name} was changed.`)
      if (output.json) output.document(view)
    })
  return explained(command, {
    examples: ['keymesh notifications change pager --kinds all', 'keymesh notifications change pager --off'],
    exit: { 0: 'changed', 1: 'there is no such endpoint' },
  })
}

interface ChangeOptions extends EndpointOptions {
  readonly name?: string
  readonly on?: boolean
  readonly off?: boolean
}

function removeCommand(dependencies: CommandDependencies): Command {
  const command = new Command('remove')
    .description('delete an endpoint, with its deliveries')
    .argument('<endpoint>', 'its name or id')
    .option('--json', 'print one JSON document')
    .action(async (idOrName: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        await deleteEndpoint(context.db, await placeOf(context, idOrName), anyRevision)
        await record(context, 'notificationEndpoint.delete', idOrName)
      })
      output.line(`Endpoint ${idOrName} was removed.`)
      if (output.json) output.document({ endpoint: idOrName, removed: true })
    })
  return explained(command, {
    examples: ['keymesh notifications remove pager'],
    exit: { 0: 'removed', 1: 'there is no such endpoint' },
  })
}

function rotateCommand(dependencies: CommandDependencies): Command {
  const command = new Command('rotate-secret')
    .description('sign with a new secret; the older one signs too for a day')
    .argument('<endpoint>', 'its name or id')
    .option('--at-once', 'the older secret signs no more')
    .option('--json', 'print one JSON document')
    .action(async (idOrName: string, options: { readonly atOnce?: boolean }, command: Command) => {
      const output = dependencies.output(command)
      const { view, signingSecret } = await dependencies.withContext(async (context) => {
        const times = { nowMs: context.now(), overlapMs: options.atOnce === true ? 0 : DEFAULT_OVERLAP_MS }
        const rotated = await rotateSigningSecret(writer(context), await placeOf(context, idOrName), times)
        await record(context, 'notificationEndpoint.rotateSecret', idOrName)
        return rotated
      })
      printSecret(output, view, signingSecret, `Endpoint ${view.name} has a new secret.`)
    })
  return explained(command, {
    notes: 'The secret is printed once.',
    examples: ['keymesh notifications rotate-secret pager'],
    exit: { 0: 'rotated', 1: 'there is no such endpoint' },
  })
}

const anyRevision = (): void => undefined

const writer = ({ db, sealer }: Context) => ({ db, sealer, random: cryptoRandom })

/** Undefined when none is given. Throws InvalidInputError when nothing may be sent there. */
function urlOf({ config }: Context, { to, toEnv }: UrlOptions): Secret | undefined {
  if (to !== undefined && toEnv !== undefined) throw badArgument('--to', 'stands beside --to-env; give one of them')
  const path = toEnv === undefined ? '--to' : '--to-env'
  const given = toEnv === undefined ? to : config.secretFromEnvironment(toEnv)?.reveal()
  if (given === undefined) {
    if (toEnv !== undefined) throw badArgument(path, `the environment variable ${toEnv} is not set`)
    return undefined
  }
  if (!URL.canParse(given)) throw badArgument(path, 'must be a URL')
  const { allowHttp, allowedNetworks } = config.notifications
  const problem = receiverProblem(new URL(given), { allowHttp, allowed: parseNetworks(allowedNetworks) })
  if (problem !== null) throw badArgument(path, problem)
  return new Secret(given)
}

/** For commander. */
function parseKinds(text: string): readonly NotificationKind[] {
  if (text === 'all') return NOTIFICATION_KINDS
  const given = text.split(',').map((kind) => kind.trim())
  const unknown = given.filter((kind) => !NOTIFICATION_KINDS.some((known) => known === kind))
  if (unknown.length > 0) {
    throw new InvalidArgumentError(`give all, or some of ${NOTIFICATION_KINDS.join(', ')}, separated by commas`)
  }
  return NOTIFICATION_KINDS.filter((kind) => given.includes(kind))
}

const badArgument = (path: string, message: string) => new InvalidInputError('The command line', [{ path, message }])

function printSecret(output: Output, view: EndpointView, secret: Secret, line: string): void {
  output.line(line)
  output.line(`Signing secret, shown only now: ${secret.reveal()}`)
  if (output.json) output.document({ ...view, signingSecret: secret.reveal() })
}
