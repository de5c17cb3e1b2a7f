import { Command } from 'commander'
import type { Context } from '../context.ts'
import type { Plan } from '../reconcile/plan.ts'
import { isEmpty, renderPlan } from '../reconcile/render.ts'
import type { CommandDependencies } from './command.ts'
import { selectBrokers, selectPairs } from './select.ts'

interface PlanOptions {
  readonly broker?: string
  readonly registration?: string
  readonly allowDisruptive?: boolean
}

export function planCommand(dependencies: CommandDependencies): Command {
  return new Command('plan')
    .description('print what a run would do now, and change nothing')
    .option('--broker <id>', 'only this broker')
    .option('--registration <id>', 'only this registration')
    .option('--allow-disruptive', 'plan as if actions that drop live clients may run')
    .option('--json', 'print one JSON document per registration with something to do')
    .addHelpText(
      'after',
      `
Examples:
  keymesh plan
  keymesh plan --broker broker-eu --registration parcel-tracker

Exit status: 0 there is nothing to do, 1 there is something to do, 2 bad input.`,
    )
    .action(async (options: PlanOptions, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        let found = 0
        for await (const plan of findPlans(context, options, dependencies.signal)) {
          if (isEmpty(plan)) continue
          found += 1
          // One line per plan: a large broker's plans are never held in memory.
          if (output.json) output.document(plan)
          else for (const line of renderPlan(plan)) output.line(line)
        }
        if (found > 0) dependencies.exitWith(1)
        if (found === 0) output.line('Nothing to do: the brokers hold what they should.')
        else output.line(`\n${found} registration${found === 1 ? '' : 's'} with something to do.`)
      })
    })
}

async function* findPlans(context: Context, options: PlanOptions, signal: AbortSignal): AsyncIterable<Plan> {
  const run = { signal, allowDisruptive: options.allowDisruptive ?? false }
  if (options.registration !== undefined) {
    for (const pair of await selectPairs(context, options.registration, options.broker)) {
      const plan = await context.engine.planPair(pair, run)
      if (plan !== null) yield plan
    }
    return
  }
  for (const broker of await selectBrokers(context, options.broker)) yield* context.engine.planBroker(broker, run)
}
