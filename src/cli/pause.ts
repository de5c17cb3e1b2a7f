import { Command } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import { MAX_LAGGING, type PauseTarget } from '../operations/operations.ts'
import type { PauseView } from '../store/pause.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { type Output, table } from './output.ts'
import { onStoreOrService } from './service-option.ts'

interface TargetOptions {
  readonly account?: boolean
  readonly broker?: string
  readonly registration?: string
}

export function pauseCommand(dependencies: CommandDependencies): Command {
  const command = withTarget(new Command('pause'))
    .description('pause everything of the account, a broker or a registration: what runs ends, nothing begins')
    .option('--list', 'show what is paused')
    .option('--json', 'print one JSON document, or one per pause')
    .action(async (options: TargetOptions & { readonly list?: boolean }, command: Command) => {
      const output = dependencies.output(command)
      if (options.list === true) {
        await operate(dependencies, command, async (operations) => printPauses(await operations.pauses(), output))
        return
      }
      const target = targetOf(options)
      await operate(dependencies, command, (operations) => operations.pause(target))
      output.line(`Paused: ${describe(target)}. \`keymesh resume\` lets it go on.`)
      if (output.json) output.document({ ...target, paused: true })
    })
  return explained(onStoreOrService(command), {
    notes: `Pauses add up: all that concern a run must be resumed. Changes are taken meanwhile, and reach the brokers afterwards; a
credential that is deleted works on a paused broker until then.`,
    examples: ['keymesh pause --broker broker-eu', 'keymesh pause --list'],
    exit: { 0: 'paused, or listed', 1: 'it could not be done' },
  })
}

export function resumeCommand(dependencies: CommandDependencies): Command {
  const command = withTarget(new Command('resume'))
    .description('let go on what was paused')
    .option('--json', 'print one JSON document')
    .action(async (options: TargetOptions, command: Command) => {
      const output = dependencies.output(command)
      const target = targetOf(options)
      const lagging = await operate(dependencies, command, (operations) => operations.resume(target))
      const many = lagging === MAX_LAGGING ? `${MAX_LAGGING} or more` : String(lagging)
      output.line(`Resumed: ${describe(target)}. Registrations that lag on a broker: ${many}.`)
      if (output.json) output.document({ ...target, paused: false, lagging })
    })
  return explained(onStoreOrService(command), {
    notes: 'The running service takes up within seconds what lags.',
    examples: [
      'keymesh resume --broker broker-eu',
      'keymesh resume --registration parcel-tracker && keymesh reconcile --registration parcel-tracker',
    ],
    exit: { 0: 'resumed, whether it was paused or not', 1: 'it could not be done' },
  })
}

const withTarget = (command: Command): Command =>
  command
    .option('--account', 'everything of the account')
    .option('--broker <id>', 'this broker')
    .option('--registration <id>', 'this registration')

/** Throws InvalidInputError unless exactly one is named. */
function targetOf({ account, broker, registration }: TargetOptions): PauseTarget {
  const targets: readonly PauseTarget[] = [
    ...(account === true ? [{ scope: 'account', id: null } as const] : []),
    ...(broker === undefined ? [] : [{ scope: 'broker', id: broker } as const]),
    ...(registration === undefined ? [] : [{ scope: 'registration', id: registration } as const]),
  ]
  const [target] = targets
  if (target !== undefined && targets.length === 1) return target
  throw new InvalidInputError('The command line', [{ message: 'give one of --account, --broker and --registration' }])
}

const describe = ({ scope, id }: PauseTarget): string => (id === null ? 'everything of the account' : `${scope} ${id}`)

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
