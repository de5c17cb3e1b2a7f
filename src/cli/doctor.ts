import { Command } from 'commander'
import { readEnv } from '../config.ts'
import type { Finding, Outcome } from '../doctor/finding.ts'
import type { CommandDependencies } from './command.ts'
import { explained } from './help.ts'
import type { Output } from './output.ts'

export function doctorCommand(dependencies: CommandDependencies): Command {
  const command = new Command('doctor')
    .description('look at the whole set-up, change nothing, and say how to fix what is wrong')
    .option('--json', 'print one JSON document per finding')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      const counts: Record<Outcome, number> = { ok: 0, warning: 0, problem: 0, skipped: 0 }
      const { diagnose } = await import('../doctor/doctor.ts')
      const findings = diagnose({
        process: readEnv(),
        nodeVersion: process.version,
        now: Date.now,
        signal: dependencies.signal,
        onProgress: (what) => output.progress(`looking at ${what}`),
      })
      for await (const finding of findings) {
        counts[finding.outcome] += 1
        if (output.json) output.document(finding)
        else for (const line of linesOf(finding, output)) output.line(line)
      }
      output.endProgress()
      const { ok, warning, problem, skipped } = counts
      output.line(`\n${ok} ok, ${warning} to look at, ${problem} wrong, ${skipped} skipped.`)
      if (problem > 0) dependencies.exitWith(1)
    })
  return explained(command, {
    notes: `Settings, database with its migrations and clock, key ring and the secrets sealed with it, queue, disk, Node.js, the
catalogue of another service, and of each broker the management address, TLS, user, message VPN, authentication, what the
user may read and write, and every exposed protocol. It runs where the service runs, with the same environment.`,
    examples: ['keymesh doctor', 'keymesh doctor --json'],
    exit: { 0: 'nothing is wrong; there may be warnings', 1: 'something is wrong' },
  })
}

const SIGNS: Readonly<Record<Outcome, string>> = { ok: 'ok', warning: 'look', problem: 'WRONG', skipped: 'skip' }

function linesOf({ check, outcome, found, fix }: Finding, { paint }: Output): readonly string[] {
  const { green, yellow, red, dim } = paint
  const colour = { ok: green, warning: yellow, problem: red, skipped: dim }[outcome]
  const sign = colour(SIGNS[outcome].padEnd(5))
  return [`${sign}  ${check}: ${found}`, ...(fix === null ? [] : [`       -> ${fix}`])]
}
