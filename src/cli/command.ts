import type { Command } from 'commander'
import type { ServiceAddress } from '../config.ts'
import type { Context } from '../context.ts'
import type { Output } from './output.ts'

/** What every command gets: the context is opened when first needed and closed when the command ends. */
export interface CommandDependencies {
  /** Runs `work` with an open context; closes it whatever happens. */
  withContext<Result>(work: (context: Context) => Promise<Result>): Promise<Result>
  /** The running service that the command is to ask instead of the store; null or absent: the store. */
  service?(command: Command): ServiceAddress | null
  /** The output for this command's `--json` option. */
  output(command: Command): Output
  /** The status that the process ends with: 0 all is well, 1 something failed or waits for a person, 2 bad input. */
  exitWith(status: 0 | 1 | 2): void
  /** Aborted by SIGINT or SIGTERM. */
  readonly signal: AbortSignal
}
