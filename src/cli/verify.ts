import { Command, Option } from 'commander'
import { PROTOCOLS, type Protocol } from '../domain/catalogue.ts'
import { standingOf } from '../domain/verdict.ts'
import type { VerifyEvent } from '../operations/operations.ts'
import { describeVerdict } from '../reconcile/verify.ts'
import type { VerifyFinding } from '../reconcile/verify-broker.ts'
import { describeControl, type FoundLogin, VerifySummary } from '../reconcile/verify-summary.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { chosen, type PlaceOptions } from './options.ts'
import { type Output, table } from './output.ts'
import { onStoreOrService } from './service-option.ts'

interface VerifyOptions extends PlaceOptions {
  readonly protocol?: Protocol
  readonly all?: boolean
  readonly strict?: boolean
}

export function verifyCommand(dependencies: CommandDependencies): Command {
  const command = new Command('verify')
    .description('log in now with every credential that a broker has confirmed, and say what each login came to')
    .option('--broker <id>', 'only on this broker')
    .option('--registration <id>', 'only with credentials of this registration')
    .addOption(new Option('--protocol <name>', 'only over this protocol').choices(PROTOCOLS))
    .option('--all', 'list every login, also those that were accepted')
    .option('--strict', 'also fail when something could not be verified')
    .option('--json', 'print one JSON document per login, control and broker')
    .action(async (options: VerifyOptions, command: Command) => {
      const output = dependencies.output(command)
      const { protocol } = options
      const request = { ...chosen(options), ...(protocol === undefined ? {} : { protocol }) }
      await operate(dependencies, command, async (operations) => {
        const run = new VerifyRun(output, options)
        for await (const event of operations.verify(request, dependencies.signal)) run.add(event)
        output.endProgress()
        if (!run.report()) dependencies.exitWith(1)
      })
    })
  return explained(onStoreOrService(command), {
    notes: `Over each protocol a wrong password is tried, too: an accepted login proves nothing where anything is accepted. Nothing is
written to a broker; a password that a broker rejects is written again by the next run.`,
    examples: [
      'keymesh verify',
      'keymesh verify --broker broker-eu --protocol mqtt',
      'keymesh verify --registration parcel-tracker --all',
    ],
    exit: {
      0: 'all logins were accepted, or, without --strict, could not be verified',
      1: 'a login was rejected, a broker accepts anything or cannot be reached',
    },
  })
}

interface BrokerReport {
  readonly brokerId: string
  readonly summary: VerifySummary
  /** Why the broker could not be asked. */
  failure: string | null
}

/** What the command prints and remembers; a summary of each broker, however many credentials it has. */
class VerifyRun {
  readonly #output: Output
  readonly #options: VerifyOptions
  readonly #reports: BrokerReport[] = []
  #logins = 0

  constructor(output: Output, options: VerifyOptions) {
    this.#output = output
    this.#options = options
  }

  add(event: VerifyEvent): void {
    const { brokerId } = event
    const report = this.#reportOf(brokerId)
    switch (event.type) {
      case 'broker':
        return
      case 'finding':
        report.summary.add(event.finding)
        this.#show(brokerId, event.finding)
        return
      case 'broker-failed': {
        const { code, error } = event
        report.failure = error
        if (this.#output.json) this.#output.document({ type: 'broker', brokerId, code, error })
        return
      }
      default:
        event satisfies never
    }
  }

  #reportOf(brokerId: string): BrokerReport {
    const known = this.#reports.find((report) => report.brokerId === brokerId)
    if (known !== undefined) return known
    const report: BrokerReport = { brokerId, summary: new VerifySummary(), failure: null }
    this.#reports.push(report)
    return report
  }

  /** Prints the sums; false when something is not as it should be. */
  report(): boolean {
    const { strict = false } = this.#options
    const output = this.#output
    const reports = this.#reports.toSorted((a, b) => (a.brokerId < b.brokerId ? -1 : 1))
    if (reports.length === 0) output.line('No brokers yet: `keymesh import FILE` declares them.')
    else output.line(summaryTable(reports, output))
    for (const report of reports) for (const line of remarks(report, output)) output.line(line)
    if (output.json) for (const report of reports) documentBroker(report, output)
    return reports.every(({ failure, summary }) => failure === null && summary.isGood({ strict }))
  }

  #show(brokerId: string, finding: VerifyFinding): void {
    const output = this.#output
    if (output.json) documentFinding(brokerId, finding, output)
    if (finding.type !== 'login') return
    this.#logins += 1
    output.progress(`${this.#logins} logins; at ${brokerId}`)
    if (this.#options.all === true) output.line(`${brokerId}: ${describeLogin(finding, output)}`)
  }
}

function describeLogin({ pair, login }: FoundLogin, { paint }: Output): string {
  const { green, red, yellow } = paint
  const colour = { accepted: green, rejected: red, 'not-verified': yellow }[standingOf(login.verdict.outcome)]
  const verdict = colour(describeVerdict(login.verdict))
  return `${login.consumerKey} of registration ${pair.registrationId} over ${login.protocol}: ${verdict}`
}

function summaryTable(reports: readonly BrokerReport[], { paint }: Output): string {
  const rows = reports.flatMap(({ brokerId, failure, summary }) => {
    if (failure !== null) return [[brokerId, '-', '-', '-', '-', paint.red('cannot be reached')]]
    if (summary.protocols.length === 0) return [[brokerId, 'none', '-', '-', '-', 'not exposed, or logins are off']]
    return summary.protocols.map(({ protocol, counts, control }) => {
      const word = describeControl(control)
      return [
        brokerId,
        protocol,
        String(counts.accepted),
        counts.rejected > 0 ? paint.red(String(counts.rejected)) : '0',
        counts['not-verified'] > 0 ? paint.yellow(String(counts['not-verified'])) : '0',
        control?.outcome === 'accepts-anything' ? paint.red(word) : word,
      ]
    })
  })
  return table(['broker', 'protocol', 'accepted', 'rejected', 'not verified', 'the broker'], rows, paint)
}

function remarks({ brokerId, failure, summary }: BrokerReport, output: Output): readonly string[] {
  if (failure !== null) return [`  ${brokerId}: ${output.paint.red(failure)}`]
  const { rejected, unverified } = summary
  const more = summary.count('rejected') - rejected.length
  const anything = summary.protocols.filter(({ control }) => control?.outcome === 'accepts-anything')
  const over = anything.map(({ protocol }) => protocol).join(', ')
  return [
    ...rejected.map((login) => `  ${brokerId}: ${describeLogin(login, output)}`),
    ...(more === 0 ? [] : [`  ${brokerId}: and ${more} more; --all lists them`]),
    ...unverified.map(({ protocol, why, count }) => `  ${brokerId}: ${count} x over ${protocol}: ${why}`),
    ...(over === ''
      ? []
      : [
          `  ${brokerId}: ${output.paint.red(`any password is accepted over ${over}`)}; no login there proves anything`,
        ]),
  ]
}

function documentFinding(brokerId: string, finding: VerifyFinding, output: Output): void {
  if (finding.type === 'control') output.document({ type: 'control', brokerId, ...finding.control })
  if (finding.type !== 'login') return
  const { pair, login } = finding
  const { verdict, consumerKey, protocol, checkedAtMs } = login
  const { registrationId } = pair
  output.document({ type: 'login', brokerId, registrationId, consumerKey, protocol, ...verdict, checkedAtMs })
}

function documentBroker({ brokerId, failure, summary }: BrokerReport, output: Output): void {
  if (failure !== null) return
  const protocols = summary.protocols.map(({ protocol, counts, control }) => ({
    protocol,
    accepted: counts.accepted,
    rejected: counts.rejected,
    notVerified: counts['not-verified'],
    control: control?.outcome ?? null,
  }))
  output.document({ type: 'broker', brokerId, protocols })
}
