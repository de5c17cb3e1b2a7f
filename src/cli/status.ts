import { Command } from 'commander'
import type { RemoteCatalogueStatus } from '../store/followed-catalogues.ts'
import type { BrokerStatusView } from '../store/status-view.ts'
import { ageOf } from './age.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { type Output, table } from './output.ts'
import { unmanagedLine } from './pull.ts'
import { onStoreOrService } from './service-option.ts'

export function statusCommand(dependencies: CommandDependencies): Command {
  const command = new Command('status')
    .description('show each broker: reachable, last sweep, in sync, lagging, drifted, in error, logins, and why')
    .option('--broker <id>', 'only this broker')
    .option('--json', 'print one JSON document per broker, and one for the catalogue of another service')
    .action(async (options: { readonly broker?: string }, command: Command) => {
      const output = dependencies.output(command)
      await operate(dependencies, command, async (operations, now) => {
        const brokers = await operations.status(options.broker)
        if (output.json) for (const broker of brokers) output.document(broker)
        else if (brokers.length === 0) output.line('No brokers yet: `keymesh import FILE` declares them.')
        else output.line(statusTable(brokers, output, now()))
        for (const broker of brokers) for (const line of explanations(broker)) output.line(line)
        if (brokers.some((broker) => !isGood(broker))) dependencies.exitWith(1)
        const remote = options.broker === undefined ? await operations.followedCatalogue() : null
        if (remote === null) return
        if (output.json) output.document({ remoteCatalogue: remote })
        for (const line of remoteLines(remote, output, now())) output.line(line)
        if (remote.error !== null) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    examples: [
      'keymesh status',
      'keymesh status --broker broker-eu --json',
      'keymesh status --url https://keymesh.example.com',
    ],
    exit: { 0: 'all is in sync', 1: 'something is not, or could not be read' },
  })
}

const isGood = ({ reachable, registrations }: BrokerStatusView): boolean =>
  reachable !== false && registrations.inSync === registrations.total

export function statusTable(brokers: readonly BrokerStatusView[], output: Output, nowMs: number): string {
  const head = [
    'broker',
    'mesh',
    'reachable',
    'last sweep',
    'in sync',
    'lagging',
    'drifted',
    'waiting',
    'error',
    'logins',
  ]
  const { paint } = output
  return table(
    head,
    brokers.map((broker) => {
      const { total, inSync, lagging, drifted, held, conflict, refused, error } = broker.registrations
      const waiting = held + conflict + refused
      return [
        broker.brokerId + (broker.paused ? ' (paused)' : ''),
        broker.eventMesh ?? '-',
        reachability(broker, paint),
        broker.lastSweep === null ? 'never' : `${broker.lastSweep.outcome}${age(broker.lastSweep.finishedAtMs, nowMs)}`,
        inSync === total ? paint.green(`${inSync}/${total}`) : `${inSync}/${total}`,
        String(lagging),
        drifted > 0 ? paint.yellow(String(drifted)) : '0',
        waiting > 0 ? paint.yellow(String(waiting)) : '0',
        error > 0 ? paint.red(String(error)) : '0',
        loginSums(broker, paint),
      ]
    }),
    paint,
  )
}

function reachability({ reachable, sempVersion }: BrokerStatusView, paint: Output['paint']): string {
  if (reachable === null) return 'not tried'
  return reachable ? paint.green(`yes, SEMP ${sempVersion ?? '?'}`) : paint.red('no')
}

const SHOWN_WARNINGS = 10

function remoteLines(remote: RemoteCatalogueStatus, { paint }: Output, nowMs: number): readonly string[] {
  const { origin, followedSinceMs, lastSucceededAtMs, error, warnings, unmanagedBrokers } = remote
  const verb = followedSinceMs === null ? 'is to follow' : 'follows'
  const read = lastSucceededAtMs === null ? 'never read' : `last read${age(lastSucceededAtMs, nowMs)}`
  return [
    `The account ${verb} the catalogue of ${origin}, ${read}.`,
    ...(error === null ? [] : [paint.red(`  ${error}`)]),
    ...unmanagedBrokers.map((broker) => paint.yellow(`  ${unmanagedLine(broker)}`)),
    ...warnings.slice(0, SHOWN_WARNINGS).map((warning) => paint.yellow(`  ${warning}`)),
    ...(warnings.length > SHOWN_WARNINGS
      ? [`  … and ${warnings.length - SHOWN_WARNINGS} more: --json shows them`]
      : []),
  ]
}

const age = (atMs: number | null, nowMs: number): string => (atMs === null ? '' : ` ${ageOf(atMs, nowMs)}`)

function loginSums({ logins }: BrokerStatusView, { red, yellow }: Output['paint']): string {
  const { accepted, rejected, notVerified } = logins
  const parts = [
    accepted > 0 ? `${accepted} accepted` : null,
    rejected > 0 ? red(`${rejected} rejected`) : null,
    notVerified > 0 ? yellow(`${notVerified} not verified`) : null,
  ].filter((part) => part !== null)
  return parts.length === 0 ? '-' : parts.join(', ')
}

function explanations({
  brokerId,
  error,
  reasons,
  registrations,
  logins,
  ...broker
}: BrokerStatusView): readonly string[] {
  const { needPerson } = registrations
  return [
    ...(error === null ? [] : [`  ${brokerId}: ${error}`]),
    ...reasons.map(({ reason, count }) => `  ${brokerId}: ${count} x ${reason}`),
    ...(logins.acceptsAnything.length === 0
      ? []
      : [`  ${brokerId}: warning: any password is accepted over ${logins.acceptsAnything.join(', ')}`]),
    ...(broker.restsUntilMs === null ? [] : [`  ${brokerId}: rests after failures in a row, next try by itself`]),
    ...strangers(brokerId, broker.lookalikes),
    ...(needPerson === 0 ? [] : [`  ${brokerId}: registrations that need a person: ${needPerson}`]),
  ]
}

/** Another Keymesh on the same message VPN, or what a lost store left behind. */
function strangers(brokerId: string, lookalikes: BrokerStatusView['lookalikes']): readonly string[] {
  if (lookalikes === null) return []
  const { count, growing } = lookalikes
  const said = growing
    ? `another Keymesh seems to work on its message VPN: ${count} objects look like ours, more than before`
    : `${count} objects look like ours and are not in the ledger`
  return [`  ${brokerId}: warning: ${said}; see \`keymesh orphans --broker ${brokerId}\``]
}
