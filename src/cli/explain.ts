import { Command } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import { type NegativeControl, standingOf } from '../domain/verdict.ts'
import type { RuleResult } from '../domain/visibility.ts'
import { describeVerdict } from '../reconcile/verify.ts'
import type { NamedBrokerExplanation } from '../store/explain-product.ts'
import type { BrokerExplanation, RegistrationExplanation } from '../store/explain-registration.ts'
import { toVerdict } from '../store/login-verdicts.ts'
import type { LoginView } from '../store/logins-view.ts'
import { ageOf } from './age.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import type { Output } from './output.ts'
import { onStoreOrService } from './service-option.ts'

export function explainCommand(dependencies: CommandDependencies): Command {
  const command = new Command('explain')
    .description(
      'say which rule makes a product visible or not, a broker usable or not, and what a registration waits for',
    )
    .addCommand(productCommand(dependencies))
    .addCommand(brokerCommand(dependencies))
    .addCommand(registrationCommand(dependencies))
  return explained(command, {
    examples: ['keymesh explain product orders', 'keymesh explain registration parcel-tracker'],
    exit: { 0: 'it was explained', 1: 'it could not be read', 2: 'there is no such object, or wrong input' },
  })
}

function productCommand(dependencies: CommandDependencies): Command {
  const command = new Command('product')
    .description('each version of a product: which visibility rule holds, which fails, what to do')
    .argument('<id>', 'the id of the product')
    .option('--json', 'print one JSON document')
    .action(async (id: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      const product = await operate(dependencies, command, (operations) => operations.explainProduct(id))
      if (product === null) throw unknown('product', id)
      if (output.json) {
        output.document(product)
        return
      }
      for (const { version, visible, rules, brokers } of product.versions) {
        const verdict = visible ? output.paint.green('visible') : output.paint.red('not visible')
        output.line(`${product.name} (${product.id}) ${version}: ${verdict}`)
        printRules(rules, output)
        for (const broker of brokers) printBroker(broker, output)
      }
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh explain product orders'],
    exit: {
      0: 'it was explained, visible or not',
      1: 'it could not be read',
      2: 'there is no such product, or wrong input',
    },
  })
}

function brokerCommand(dependencies: CommandDependencies): Command {
  const command = new Command('broker')
    .description('which rule lets products use a broker, which does not, what to do')
    .argument('<id>', 'the id of the broker')
    .option('--json', 'print one JSON document')
    .action(async (id: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      const broker = await operate(dependencies, command, (operations) => operations.explainBroker(id))
      if (broker === null) throw unknown('broker', id)
      if (output.json) output.document(broker)
      else printBroker(broker, output)
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh explain broker broker-eu'],
    exit: {
      0: 'it was explained, usable or not',
      1: 'it could not be read',
      2: 'there is no such broker, or wrong input',
    },
  })
}

function registrationCommand(dependencies: CommandDependencies): Command {
  const command = new Command('registration')
    .description('each access request of a registration: its state, why, what to do; and how each broker stands')
    .argument('<id>', 'the id of the registration')
    .option('--json', 'print one JSON document')
    .action(async (id: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      const [found, nowMs] = await operate(
        dependencies,
        command,
        async (operations, now) => [await operations.explainRegistration(id), now()] as const,
      )
      if (found === null) throw unknown('registration', id)
      if (output.json) output.document(found)
      else printRegistration(found, output, nowMs)
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh explain registration parcel-tracker'],
    exit: {
      0: 'it was explained, whatever the state',
      1: 'it could not be read',
      2: 'there is no such registration, or wrong input',
    },
  })
}

function printRegistration(
  { id, name, accessRequests, brokers }: RegistrationExplanation,
  output: Output,
  nowMs: number,
): void {
  const { green, red, yellow } = output.paint
  output.line(`${name} (${id})`)
  if (accessRequests.length === 0) output.line('  It asks for no product, so no broker knows it.')
  for (const { id: request, productId, productVersion, state, explanation } of accessRequests) {
    const colour = state === 'LIVE' ? green : state === 'ERROR' ? red : yellow
    output.line(`  access request ${request}, ${productId} ${productVersion}: ${colour(state)}. ${explanation}`)
  }
  for (const { brokerId, wanted, state, reason, generation, reachedGeneration, paused, logins } of brokers) {
    const shown = reachedGeneration < generation && state === 'in-sync' ? 'lagging' : state
    const notes = [wanted ? null : 'being withdrawn', paused ? 'paused' : null].filter((note) => note !== null)
    const why = shown === 'in-sync' || reason === null ? '' : `: ${reason}`
    output.line(`  broker ${brokerId}: ${[shown, ...notes].join(', ')}${why}`)
    for (const login of logins) output.line(`    ${describeLogin(login, output, nowMs)}`)
  }
}

function describeLogin(
  { consumerKey, protocol, control, checkedAtMs, ...verdict }: BrokerExplanation['logins'][number],
  { paint: { green, red, yellow } }: Output,
  nowMs: number,
): string {
  const colour = { accepted: green, rejected: red, 'not-verified': yellow }[standingOf(verdict.outcome)]
  const said = colour(describeVerdict(toVerdict(verdict)))
  const proof = control?.outcome === 'accepts-anything' ? red(WRONG_PASSWORD[control.outcome]) : wrongPassword(control)
  return `login of ${consumerKey} over ${protocol}, ${ageOf(checkedAtMs, nowMs)}: ${said} (${proof})`
}

const WRONG_PASSWORD: Readonly<Record<NegativeControl, string>> = {
  refused: 'a wrong password is refused',
  'accepts-anything': 'a wrong password is accepted, too',
  'not-verified': 'a wrong password was tried and proved nothing',
}

const wrongPassword = (control: LoginView['control']): string =>
  control === null ? 'no wrong password was tried' : WRONG_PASSWORD[control.outcome]

function unknown(what: string, id: string): InvalidInputError {
  return new InvalidInputError('The command line', [{ message: `there is no ${what} \`${id}\` in this account` }])
}

function printBroker({ id, usable, rules }: NamedBrokerExplanation, output: Output): void {
  output.line(`broker ${id}: ${usable ? output.paint.green('usable') : output.paint.red('not usable')}`)
  printRules(rules, output)
}

function printRules(rules: readonly RuleResult<string>[], output: Output): void {
  for (const { rule, holds, explanation, fix } of rules) {
    const sign = holds ? output.paint.green('ok  ') : output.paint.red('fail')
    output.line(`  ${sign} ${rule}: ${explanation}${fix === null ? '' : ` ${fix}`}`)
  }
}
