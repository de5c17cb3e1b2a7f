import { Command } from 'commander'
import { renderPlan } from '../reconcile/render.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { operate } from './operate.ts'
import { chosen, type PlaceOptions } from './options.ts'
import { onStoreOrService } from './service-option.ts'

export function planCommand(dependencies: CommandDependencies): Command {
  const command = new Command('plan')
    .description('print what a run would do now, and change nothing')
    .option('--broker <id>', 'only this broker')
    .option('--registration <id>', 'only this registration')
    .option('--allow-disruptive', 'plan as if actions that drop live clients may run')
    .option('--json', 'print one JSON document per registration with something to do')
    .action(async (options: PlaceOptions & { readonly allowDisruptive?: boolean }, command: Command) => {
      const output = dependencies.output(command)
      const request = { ...chosen(options), allowDisruptive: options.allowDisruptive ?? false }
      await operate(dependencies, command, async (operations) => {
        let found = 0
        for await (const plan of operations.plans(request, dependencies.signal)) {
          found += 1
          // One line per plan: a large broker's plans are never held in memory.
          if (output.json) output.document(plan)
          else for (const line of renderPlan(plan)) output.line(line)
          output.progress(`${found} registrations with something to do`)
        }
        output.endProgress()
        if (found > 0) dependencies.exitWith(1)
        if (found === 0) output.line('Nothing to do: the brokers hold what they should.')
        else output.line(`\n${found} registration${found === 1 ? '' : 's'} with something to do.`)
      })
    })
  return explained(onStoreOrService(command), {
    examples: ['keymesh plan', 'keymesh plan --broker broker-eu --registration parcel-tracker'],
    exit: { 0: 'there is nothing to do', 1: 'there is something to do, or a broker could not be read' },
  })
}
