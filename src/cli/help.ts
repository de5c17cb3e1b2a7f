import type { Command } from 'commander'

/** What the help of a command says below its options. */
export interface CommandHelp {
  /** What a person should know before; lines as they are to be shown. */
  readonly notes?: string
  /** Whole command lines. */
  readonly examples: readonly [string, ...string[]]
  /** What each exit status means; 2 is always wrong input, and nothing was done then. */
  readonly exit: { readonly 0: string; readonly 1: string; readonly 2?: string }
}

const helps = new WeakMap<Command, CommandHelp>()

export const WRONG_INPUT = 'wrong command line or settings'

/** Examples and exit statuses, in one form for every command. */
export function explained(command: Command, help: CommandHelp): Command {
  helps.set(command, help)
  const { notes, examples, exit } = help
  const sections = [
    ...(notes === undefined ? [] : [notes.trim()]),
    ['Examples:', ...examples.map((line) => `  ${line}`)].join('\n'),
    ['Exit status:', `  0  ${exit[0]}`, `  1  ${exit[1]}`, `  2  ${exit[2] ?? WRONG_INPUT}`].join('\n'),
  ]
  return command.addHelpText('after', `\n${sections.join('\n\n')}`)
}

export const helpOf = (command: Command): CommandHelp | undefined => helps.get(command)
