import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { nameWanted } from '../../src/cli/completion.ts'
import { helpOf } from '../../src/cli/help.ts'
import { createOutput } from '../../src/cli/output.ts'
import { createProgram, runCommandLine } from '../../src/cli/program.ts'
import { pathOf } from '../../src/cli/service-option.ts'

const streams = { out: { write: () => true }, err: { write: () => true } }
const program = createProgram(
  {
    withContext: () => Promise.reject(new Error('this test runs no command')),
    output: () => createOutput(streams, { json: false }),
    exitWith: () => undefined,
    signal: new AbortController().signal,
  },
  streams,
)
const below = (command: Command): readonly Command[] => command.commands.flatMap((each) => [each, ...below(each)])
const commands = below(program)
/** `complete` is for scripts of shells; its output is theirs. */
const leaves = commands.filter((command) => command.commands.length === 0 && command.name() !== 'complete')

async function printed(words: readonly string[]): Promise<{ readonly status: number; readonly out: string }> {
  let out = ''
  const write = (text: string): void => {
    out += text
  }
  const status = await runCommandLine(['node', 'keymesh', ...words], { out: { write }, err: { write } })
  return { status, out }
}

describe.each([['keymesh', program] as const, ...commands.map((each) => [pathOf(each), each] as const)])(
  'the help of %s',
  (path, command) => {
    it('has a description, an example that is called so, and what each exit status means', async () => {
      const words = command === program ? [] : path.split(' ')
      const { status, out } = await printed([...words, '--help'])
      expect(status).toBe(0)
      expect(command.description().length).toBeGreaterThan(10)
      expect(out.replace(/\s+/g, ' ')).toContain(command.description())
      expect(helpOf(command)).toBeDefined()
      expect(out).toMatch(new RegExp(`^Examples:\n(.*\n)*? {2}.*keymesh ${command === program ? '' : path}`, 'm'))
      expect(out).toMatch(/^Exit status:\n {2}0 {2}\S.*\n {2}1 {2}\S.*\n {2}2 {2}\S.*$/m)
    })
  },
)

describe('every example', () => {
  const examples = commands.flatMap((command) => [...(helpOf(command)?.examples ?? [])].map((line) => [line] as const))

  it.each(examples)('names a command that there is, and its options: %s', (line) => {
    for (const call of line.split(/&&|\|\||>>?|\)/).filter((part) => part.includes('keymesh '))) {
      const words = call.slice(call.indexOf('keymesh ')).trim().split(/\s+/).slice(1)
      let command: Command = program
      for (const word of words) {
        const next = command.commands.find((each) => each.name() === word)
        if (next === undefined) break
        command = next
      }
      expect(command).not.toBe(program)
      if (command.name() === 'complete') continue
      const known = command.options.flatMap(({ short, long }) => [short, long])
      const given = words.filter((word) => word.startsWith('--')).map((word) => word.split('=')[0])
      expect(given.filter((option) => !known.includes(option))).toEqual([])
    }
  })
})

it.each(leaves.map((command) => [pathOf(command), command] as const))('%s prints JSON, too', (_path, command) => {
  expect(command.options.map(({ long }) => long)).toContain('--json')
})

describe('a command that works on its own host', () => {
  it.each(['serve', 'keys list', 'keys rotate', 'users list', 'demo', 'sandbox', 'doctor', 'backup file', 'pull'])(
    'says so when it is pointed to a service: %s',
    async (words) => {
      const { status, out } = await printed([...words.split(' '), '--url', 'https://keymesh.example.com'])
      expect(status).toBe(2)
      expect(out).toContain('works on the host and the store of the service itself; run it there, without --url')
    },
  )
})

it.each([
  [['status', '--broker', ''], 'broker'],
  [['plan', '--registration', 'par'], 'registration'],
  [['plan', '--registration=par'], 'registration'],
  [['explain', 'broker', ''], 'broker'],
  [['explain', 'product', ''], null],
  [['import', 'por'], 'file'],
  [['import', '--'], null],
  [['import', 'portal.yaml', '--yes-prune', ''], null],
  [['import'], null],
  [[''], null],
] as const)('completion of %j asks for names of %s', (words, wanted) => {
  expect(nameWanted(words)).toBe(wanted)
})
