import { Command } from 'commander'
import type { DemoStory, DemoSummary } from '../demo/demo.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import { type Output, table } from './output.ts'
import { statusTable } from './status.ts'

interface DemoOptions {
  readonly once?: boolean
}

export function demoCommand(dependencies: CommandDependencies): Command {
  const command = new Command('demo')
    .description('run the main job on this machine: three simulated brokers, a sample catalogue, drift that heals')
    .option('--once', 'end after the story instead of staying up')
    .option('--json', 'end with one line of JSON on standard output')
    .action(async (options: DemoOptions, command: Command) => {
      const output = dependencies.output(command)
      const { endedWell, keepRunning, runDemo } = await import('../demo/demo.ts')
      const demo = await runDemo(storyOn(output), dependencies.signal)
      try {
        const good = endedWell(demo.summary)
        if (!good) dependencies.exitWith(1)
        output.line(`\n${statusTable(demo.statuses, output, demo.context.now())}\n`)
        output.line(`${loginTable(demo.summary, output)}\n`)
        for (const line of verdict(demo.summary, good, output)) output.line(line)
        if (output.json) output.document(demo.summary)
        if (options.once === true) return
        const directory = demo.context.config.dataDirectory
        output.line(
          `\nIt stays up, sweeps every 30 seconds and heals what you break. Ctrl-C ends it. In another terminal:`,
        )
        output.line(`  KEYMESH_DATA_DIR=${directory} npx keymesh status`)
        output.line(`  KEYMESH_DATA_DIR=${directory} npx keymesh drift`)
        await keepRunning(demo, dependencies.signal)
      } finally {
        await demo.dispose()
      }
    })
  return explained(command, {
    notes: 'Nothing needs to be installed or set up, and nothing of it is left behind.',
    examples: ['keymesh demo', 'keymesh demo --once --json'],
    exit: { 0: 'everything ended as it should', 1: 'it did not' },
  })
}

function storyOn(output: Output): DemoStory {
  const { paint } = output
  return {
    step: (text) => output.progress(`… ${text}`),
    done: (text) => output.line(`${paint.green('✓')} ${text}`),
    detail: (text) => output.line(paint.dim(`    ${text}`)),
  }
}

/** One row per protocol, over all brokers. */
function loginTable({ logins, credentialsOnBrokers: all }: DemoSummary, { paint }: Output): string {
  const rows = Object.entries(logins).map(([protocol, { accepted, refusedWrong }]) => [
    protocol,
    `${accepted} of ${all} accepted`,
    `${refusedWrong} of ${all} refused`,
  ])
  return table(['protocol', 'right password', 'wrong password'], rows, paint)
}

function verdict(summary: DemoSummary, good: boolean, { paint }: Output): readonly string[] {
  const { drift, inSync, pairs, conflicts, registrations, credentials, objects, durationMs } = summary
  return [
    `${registrations} registrations with ${credentials} credentials, ${objects} broker objects, ${inSync} of ${pairs} registrations on brokers in sync`,
    `drift: ${drift.injected} injected, ${drift.detected} detected, ${drift.repaired} repaired`,
    `conflicts: ${conflicts}, ${summary.foreignUntouched ? 'left alone' : paint.red('TOUCHED')}; writes that a second run would send: ${summary.pendingWrites}`,
    good
      ? paint.green(`All is as it should be, after ${(durationMs / 1000).toFixed(1)} s.`)
      : paint.red('Something is not as it should be.'),
  ]
}
