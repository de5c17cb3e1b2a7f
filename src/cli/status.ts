import { Command } from 'commander'
import { type RemoteCatalogueStatus, readRemoteStatus } from '../store/followed-catalogues.ts'
import { type BrokerStatusView, readStatus } from '../store/status-view.ts'
import type { CommandDependencies } from './command.ts'
import { type Output, table } from './output.ts'
import { unmanagedLine } from './pull.ts'

export function statusCommand(dependencies: CommandDependencies): Command {
  return new Command('status')
    .description('show each broker: reachable, last sweep, in sync, lagging, drifted, in error, and why')
    .option('--broker <id>', 'only this broker')
    .option('--json', 'print one JSON document per broker, and one for the catalogue of another service')
    .addHelpText('after', '\nExit status: 0 all is in sync, 1 something is not, 2 bad input.')
    .action(async (options: { readonly broker?: string }, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        const brokers = await readStatus(context.db, context.accountId, options.broker)
        if (output.json) for (const broker of brokers) output.document(broker)
        else if (brokers.length === 0) output.line('No brokers yet: `keymesh import FILE` declares them.')
        else output.line(statusTable(brokers, output, context.now()))
        for (const broker of brokers) for (const line of explanations(broker)) output.line(line)
        if (brokers.some((broker) => !isGood(broker))) dependencies.exitWith(1)
        const remote = options.broker === undefined ? await readRemoteStatus(context.db, context.accountId) : null
        if (remote === null) return
        if (output.json) output.document({ remoteCatalogue: remote })
        for (const line of remoteLines(remote, output, context.now())) output.line(line)
        if (remote.error !== null) dependencies.exitWith(1)
      })
    })
}

const isGood = ({ reachable, registrations }: BrokerStatusView): boolean =>
  reachable !== false && registrations.inSync === registrations.total

export function statusTable(brokers: readonly BrokerStatusView[], output: Output, nowMs: number): string {
  const head = ['broker', 'mesh', 'reachable', 'last sweep', 'in sync', 'lagging', 'drifted', 'waiting', 'error']
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

function age(atMs: number | null, nowMs: number): string {
  if (atMs === null) return ''
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000))
  if (seconds < 90) return ` ${seconds} s ago`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? ` ${minutes} min ago` : ` ${Math.round(minutes / 60)} h ago`
}

function explanations({ brokerId, error, reasons, registrations }: BrokerStatusView): readonly string[] {
  const { needPerson } = registrations
  return [
    ...(error === null ? [] : [`  ${brokerId}: ${error}`]),
    ...reasons.map(({ reason, count }) => `  ${brokerId}: ${count} x ${reason}`),
    ...(needPerson === 0 ? [] : [`  ${brokerId}: registrations that need a person: ${needPerson}`]),
  ]
}
