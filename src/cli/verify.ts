import { Command, Option } from 'commander'
import type { Context } from '../context.ts'
import { PROTOCOLS, type Protocol } from '../domain/catalogue.ts'
import { codeOf, errorLine } from '../domain/errors.ts'
import { type RegistrationId, registrationId } from '../domain/ids.ts'
import { standingOf } from '../domain/verdict.ts'
import { concurrently } from '../reconcile/concurrently.ts'
import type { BrokerKey } from '../reconcile/sweep-port.ts'
import { describeVerdict } from '../reconcile/verify.ts'
import type { VerifyFinding } from '../reconcile/verify-broker.ts'
import { describeControl, type FoundLogin, VerifySummary } from '../reconcile/verify-summary.ts'
import type { CommandDependencies } from './command.ts'
import { type Output, table } from './output.ts'
import { selectBrokers, selectPairs } from './select.ts'

interface VerifyOptions {
  readonly broker?: string
  readonly registration?: string
  readonly protocol?: Protocol
  readonly all?: boolean
  readonly strict?: boolean
}

/** Each has its own pace; this many are waited for side by side. */
const BROKERS_AT_A_TIME = 4

export function verifyCommand(dependencies: CommandDependencies): Command {
  return new Command('verify')
    .description('log in now with every credential that a broker has confirmed, and say what each login came to')
    .option('--broker <id>', 'only on this broker')
    .option('--registration <id>', 'only with credentials of this registration')
    .addOption(new Option('--protocol <name>', 'only over this protocol').choices(PROTOCOLS))
    .option('--all', 'list every login, also those that were accepted')
    .option('--strict', 'also fail when something could not be verified')
    .option('--json', 'print one JSON document per login, control and broker')
    .addHelpText(
      'after',
      `
Over each protocol a wrong password is tried, too: an accepted login proves nothing where anything is accepted. Nothing is
written to a broker; a password that a broker rejects is written again by the next run.

Examples:
  keymesh verify
  keymesh verify --broker broker-eu --protocol mqtt
  keymesh verify --registration parcel-tracker --all

Exit status: 0 all logins were accepted (or could not be verified, without --strict), 1 a login was rejected, a broker
accepts anything, or a broker cannot be reached, 2 bad input.`,
    )
    .action(async (options: VerifyOptions, command: Command) => {
      const output = dependencies.output(command)
      const { signal, exitWith } = dependencies
      await dependencies.withContext(async (context) => {
        const targets = await findTargets(context, options)
        const run = new VerifyRun(output, options)
        await concurrently(targets, BROKERS_AT_A_TIME, (target) => run.verify(context, target, signal))
        if (!run.report()) exitWith(1)
      })
    })
}

interface Target {
  readonly broker: BrokerKey
  readonly registrationId?: RegistrationId
}

async function findTargets(
  context: Context,
  { broker, registration }: Pick<VerifyOptions, 'broker' | 'registration'>,
): Promise<readonly Target[]> {
  if (registration === undefined) return (await selectBrokers(context, broker)).map((each) => ({ broker: each }))
  const pairs = await selectPairs(context, registration, broker)
  return pairs.map((pair) => ({ broker: pair, registrationId: registrationId(registration) }))
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

  async verify(context: Context, target: Target, signal: AbortSignal): Promise<void> {
    const { protocol } = this.#options
    const { brokerId, accountId } = target.broker
    const report: BrokerReport = { brokerId, summary: new VerifySummary(), failure: null }
    this.#reports.push(report)
    const request = { ...target, ...(protocol === undefined ? {} : { protocol }), signal }
    try {
      for await (const finding of context.engine.verify({ accountId, brokerId }, request)) {
        report.summary.add(finding)
        this.#show(brokerId, finding)
      }
    } catch (error) {
      // Being told to stop, or that logins are off, is about all brokers.
      if (signal.aborted || codeOf(error) === 'LOGINS_OFF') throw error
      report.failure = errorLine(error)
      if (this.#output.json)
        this.#output.document({ type: 'broker', brokerId, code: codeOf(error), error: report.failure })
    }
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
