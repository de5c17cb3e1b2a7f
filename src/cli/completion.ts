import tab from '@bomb.sh/tab/commander'
import { Argument, Command } from 'commander'
import type { CommandDependencies } from './command.ts'
import type { CompletedNames } from './completed-names.ts'
import { explained } from './help.ts'
import { whereverItIs } from './service-option.ts'

export interface CompletionDependencies {
  /** The program to complete, without the two commands below. */
  readonly program: () => Command
  /** Names of brokers or registrations, when they are cheap to have; none otherwise. */
  readonly names: (what: CompletedNames) => Promise<readonly string[]>
  readonly write: (text: string) => void
  readonly output: CommandDependencies['output']
}

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const

/** `completion` prints the script that a shell reads once; the script asks `complete` at every press of the key. */
export function completionCommand(dependencies: CompletionDependencies): Command {
  const command = new Command('completion')
    .description('print the script that lets a shell complete commands, options and names')
    .addArgument(new Argument('<shell>', 'the shell that reads it').choices(SHELLS))
    .option('--json', 'print one JSON document with the script')
    .action((shell: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      const script = scriptFor(dependencies.program(), shell)
      if (output.json) output.document({ shell, script })
      else dependencies.write(script)
    })
  return explained(whereverItIs(command), {
    notes: `Names of brokers and registrations are completed when DATABASE_URL, or KEYMESH_URL and KEYMESH_TOKEN, are set.`,
    examples: [
      'source <(keymesh completion bash)',
      'source <(keymesh completion zsh)',
      'keymesh completion fish > ~/.config/fish/completions/keymesh.fish',
      'keymesh completion powershell >> $PROFILE',
    ],
    exit: { 0: 'the script was printed', 1: 'never' },
  })
}

/** Asked by the script: the words so far, the last of them unfinished. Whatever goes wrong, it offers nothing. */
export function completeCommand(dependencies: CompletionDependencies): Command {
  const command = new Command('complete')
    .description('offer what can stand next; for the script of `keymesh completion`')
    .argument('[words...]', 'the command line so far')
    .allowUnknownOption()
    .action(async (words: readonly string[]) => {
      const what = nameWanted(words)
      if (what === 'file') {
        dependencies.write(FILES)
        return
      }
      const names = what === null ? [] : await dependencies.names(what).catch(() => [])
      const root = completed(dependencies.program(), names)
      dependencies.write(printedBy(() => root.parse([...words])))
    })
  return explained(whereverItIs(command), {
    examples: ['keymesh complete -- status --br'],
    exit: { 0: 'whatever was offered', 1: 'never' },
  })
}

/** The directive of the scripts for "let the shell offer files". */
const FILES = ':0\n'

const NAMED = { '--broker': 'broker', '--registration': 'registration' } as const

/** What the unfinished word is to name. */
export function nameWanted(words: readonly string[]): CompletedNames | 'file' | null {
  const last = words.at(-1) ?? ''
  const before = words.at(-2) ?? ''
  for (const [option, what] of Object.entries(NAMED))
    if (before === option || last.startsWith(`${option}=`)) return what
  if (words[0] === 'explain' && words.length === 3)
    return words[1] === 'broker' || words[1] === 'registration' ? words[1] : null
  const takesFile = words[0] === 'import' || words[0] === 'restore'
  return takesFile && words.length > 1 && !last.startsWith('-') && !before.startsWith('-') ? 'file' : null
}

function scriptFor(program: Command, shell: string): string {
  const script = printedBy(() => completed(program).setup('keymesh', 'keymesh', shell))
  // Read a second time, the script must not complain of what it fixed the first time.
  return shell === 'bash' ? BASH_WORDS + script.replace(/^readonly /gm, '') : script
}

/** The script for bash takes the line apart by a function of the package bash-completion, which not everybody has. */
const BASH_WORDS = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
  _get_comp_words_by_ref() {
    local index word
    words=() cword=0
    for index in "\${!COMP_WORDS[@]}"; do
      word=\${COMP_WORDS[index]}
      if ((\${#words[@]} > 1)) && [[ $word == [=:] || \${words[-1]} == *[=:] ]]; then
        words[-1]+=$word
      else
        words+=("$word")
      fi
      if ((index == COMP_CWORD)); then cword=$((\${#words[@]} - 1)); fi
    done
    cur=\${words[cword]} prev=
    if ((cword > 0)); then prev=\${words[cword - 1]}; fi
  }
fi

`

/** The adapter prints to the console, and nowhere else; what it does ends before anything else prints. */
function printedBy(work: () => void): string {
  const lines: string[] = []
  const { log } = console
  console.log = (line: unknown) => lines.push(String(line))
  try {
    work()
  } finally {
    console.log = log
  }
  return lines.map((line) => `${line}\n`).join('')
}

function completed(program: Command, names: readonly string[] = []) {
  const root = tab(program, { completionCommandName: 'completion' })
  const offer = (complete: (value: string, description: string) => void): void => {
    for (const name of names) complete(name, '')
  }
  for (const [path, command] of root.commands) {
    for (const name of ['broker', 'registration']) {
      const option = command.options.get(name)
      if (option !== undefined) option.handler = offer
      const argument = path === `explain ${name}` ? command.arguments.get('id') : undefined
      if (argument !== undefined) argument.handler = offer
    }
  }
  return root
}
