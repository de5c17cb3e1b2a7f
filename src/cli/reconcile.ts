import { Command } from 'commander'
import { codeOf, errorLine } from '../domain/errors.ts'
import type { CommandDependencies } from './command.ts'
import { runPairs } from './run-pairs.ts'
import { selectBrokers, selectPairs } from './select.ts'

interface ReconcileOptions {
  readonly broker?: string
  readonly registration?: string
  readonly allowDisruptive?: boolean
}

export function reconcileCommand(dependencies: CommandDependencies): Command {
  return new Command('reconcile')
    .description('make the brokers match now: all, one broker, or one registration')
    .option('--broker <id>', 'only this broker')
    .option('--registration <id>', 'only this registration')
    .option('--allow-disruptive', 'also run actions that drop live clients')
    .option('--json', 'print one JSON document per broker or registration')
    .addHelpText(
      'after',
      `
Examples:
  keymesh reconcile
  keymesh reconcile --registration parcel-tracker --allow-disruptive

Exit status: 0 everything is as it should be, 1 something failed or waits for a person, 2 bad input.`,
    )
    .action(async (options: ReconcileOptions, command: Command) => {
      const output = dependencies.output(command)
      const run = { allowDisruptive: options.allowDisruptive ?? false, signal: dependencies.signal }
      await dependencies.withContext(async (context) => {
        if (options.registration !== undefined) {
          const pairs = await selectPairs(context, options.registration, options.broker)
          if (!(await runPairs(context, pairs, run, output))) dependencies.exitWith(1)
          return
        }
        for (const broker of await selectBrokers(context, options.broker)) {
          try {
            const result = await context.engine.sweep(broker, {
              trigger: 'operator',
              ...run,
              onProgress: ({ phase, done }) => output.progress(`${broker.brokerId}: ${phase}, ${done}`),
            })
            const { compared, objectsRead, inSync, changed, waiting, busy, failed } = result
            output.line(
              `${broker.brokerId}: ${objectsRead} objects read, ${compared} registrations compared; looked at closely: ` +
                `${changed} changed, ${inSync} already right, ${waiting} waiting for a person, ${busy} busy, ${failed} failed`,
            )
            if (output.json) output.document({ brokerId: broker.brokerId, ...result })
            if (waiting + busy + failed > 0) dependencies.exitWith(1)
          } catch (error) {
            dependencies.exitWith(1)
            output.line(`${broker.brokerId}: ${output.paint.red('failed')}: ${errorLine(error)}`)
            if (output.json)
              output.document({ brokerId: broker.brokerId, code: codeOf(error), error: errorLine(error) })
          }
        }
      })
    })
}
