import { Command } from 'commander'
import type { Context } from '../context.ts'
import { InvalidInputError } from '../domain/errors.ts'
import { brokerId } from '../domain/ids.ts'
import { audit } from '../store/audit.ts'
import { brokerExists, registrationExists } from '../store/operations-lookup.ts'
import { lagsOf } from '../store/pairs.ts'
import { type PauseView, pause, readPauses, resume, setBrokerPaused } from '../store/pause.ts'
import type { CommandDependencies } from './command.ts'
import { HOST } from './first-administrator.ts'
import { type Output, table } from './output.ts'

interface TargetOptions {
  readonly account?: boolean
  readonly broker?: string
  readonly registration?: string
}

const MAX_SHOWN = 1000

export function pauseCommand(dependencies: CommandDependencies): Command {
  return withTarget(new Command('pause'))
    .description('pause everything of the account, a broker or a registration: what runs ends, nothing begins')
    .option('--list', 'show what is paused')
    .option('--json', 'print one JSON document, or one per pause')
    .addHelpText(
      'after',
      `
Examples:
  keymesh pause --broker broker-eu
  keymesh pause --list

Pauses add up: all that concern a run must be resumed. Changes are taken meanwhile, and reach the brokers afterwards; a
credential that is deleted works on a paused broker until then.
Exit status: 0 paused, or listed; 2 bad input.`,
    )
    .action(async (options: TargetOptions & { readonly list?: boolean }, command: Command) => {
      const output = dependencies.output(command)
      if (options.list === true) {
        const { pauses } = await dependencies.withContext(({ db, accountId }) =>
          readPauses(db, accountId, { limit: MAX_SHOWN, offset: 0 }),
        )
        printPauses(pauses, output)
        return
      }
      const target = targetOf(options)
      await dependencies.withContext(async (context) => {
        await setPaused(context, target, true)
      })
      output.line(`Paused: ${describe(target)}. \`keymesh resume\` lets it go on.`)
      if (output.json) output.document({ ...target, paused: true })
    })
}

export function resumeCommand(dependencies: CommandDependencies): Command {
  return withTarget(new Command('resume'))
    .description('let go on what was paused')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  keymesh resume --broker broker-eu
  keymesh resume --registration parcel-tracker && keymesh reconcile --registration parcel-tracker

The running service takes up within seconds what lags.
Exit status: 0 resumed, whether it was paused or not; 2 bad input.`,
    )
    .action(async (options: TargetOptions, command: Command) => {
      const output = dependencies.output(command)
      const target = targetOf(options)
      const lagging = await dependencies.withContext(async (context) => {
        await setPaused(context, target, false)
        const { db, accountId } = context
        return await lagsOf(db, { accountId, ...filterOf(target) }, MAX_SHOWN)
      })
      const many = lagging.length === MAX_SHOWN ? `${MAX_SHOWN} or more` : String(lagging.length)
      output.line(`Resumed: ${describe(target)}. Registrations that lag on a broker: ${many}.`)
      if (output.json) output.document({ ...target, paused: false, lagging: lagging.length })
    })
}

const withTarget = (command: Command): Command =>
  command
    .option('--account', 'everything of the account')
    .option('--broker <id>', 'this broker')
    .option('--registration <id>', 'this registration')

type Target =
  | { readonly scope: 'account'; readonly id: null }
  | { readonly scope: 'broker' | 'registration'; readonly id: string }

/** Throws InvalidInputError unless exactly one is named. */
function targetOf({ account, broker, registration }: TargetOptions): Target {
  const targets: readonly Target[] = [
    ...(account === true ? [{ scope: 'account', id: null } as const] : []),
    ...(broker === undefined ? [] : [{ scope: 'broker', id: broker } as const]),
    ...(registration === undefined ? [] : [{ scope: 'registration', id: registration } as const]),
  ]
  const [target] = targets
  if (target !== undefined && targets.length === 1) return target
  throw new InvalidInputError('The command line', [{ message: 'give one of --account, --broker and --registration' }])
}

const describe = ({ scope, id }: Target): string => (id === null ? 'everything of the account' : `${scope} ${id}`)

function filterOf({ scope, id }: Target): { readonly brokerId?: string; readonly registrationId?: string } {
  if (id === null) return {}
  return scope === 'broker' ? { brokerId: id } : { registrationId: id }
}

/** Throws InvalidInputError when the account has no such broker or registration. */
async function setPaused(context: Context, target: Target, paused: boolean): Promise<void> {
  const { db, accountId, now } = context
  const { scope, id } = target
  if (scope === 'broker') {
    if (!(await brokerExists(db, accountId, id))) throw unknown(target)
    await setBrokerPaused(db, { accountId, brokerId: brokerId(id) }, paused)
  } else {
    if (id !== null && !(await registrationExists(db, accountId, id))) throw unknown(target)
    const place = { accountId, registrationId: id }
    await (paused ? pause(db, place, HOST.name) : resume(db, place))
  }
  const what = `${scope === 'account' ? '' : `${scope}.`}${paused ? 'pause' : 'resume'}`
  await audit(db, { atMs: now(), accountId, who: HOST, what, subject: id ?? 'account', outcome: 'done' })
}

const unknown = ({ scope, id }: Target): InvalidInputError =>
  new InvalidInputError('The command line', [
    { path: `--${scope}`, message: `there is no ${scope} \`${id}\` in this account` },
  ])

function printPauses(pauses: readonly PauseView[], output: Output): void {
  if (output.json) for (const each of pauses) output.document(each)
  else if (pauses.length === 0) output.line('Nothing is paused.')
  else {
    const rows = pauses.map(({ scope, id, pausedBy, pausedAtMs }) => [
      scope,
      id ?? '-',
      pausedBy ?? '-',
      pausedAtMs === null ? '-' : new Date(pausedAtMs).toISOString().slice(0, 19).replace('T', ' '),
    ])
    output.line(table(['what', 'id', 'paused by', 'since'], rows, output.paint))
  }
}
