import { execFile, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { completedNames } from '../../src/cli/completed-names.ts'
import { runCommandLine } from '../../src/cli/program.ts'
import { type TestMesh, withMesh } from '../helpers/mesh.ts'
import { client, ordersPortal } from './reconcile-fixtures.ts'

const hasScript = spawnSync('script', ['--version']).error === undefined
const ESCAPE = String.fromCharCode(27)

let directory: string
let mesh: TestMesh

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'keymesh-terminal-'))
  const program = join(directory, 'keymesh')
  const main = join(inject('testProgramsDirectory'), 'src/main.js')
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  await chmod(program, 0o755)
  mesh = await withMesh({ portal: (brokers) => ordersPortal(brokers, [client('app-a'), client('app-b')]) })
})
afterAll(async () => {
  await mesh?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})
afterEach(() => vi.unstubAllEnvs())

/** Without holding up this process, which is where the brokers are. A program `keymesh` is found as a shell finds it. */
function bash(script: string): Promise<string> {
  const env = { ...mesh.env, PATH: `${directory}:${process.env.PATH ?? ''}`, HOME: directory, TERM: 'xterm' }
  return new Promise((resolve) => {
    const options = { env, cwd: directory, timeout: 60_000 }
    execFile('bash', ['-c', script], options, (_status, printed, errors) => resolve(printed + errors))
  })
}

/** In this process, told that its output is a terminal. */
async function keymesh(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
  for (const [name, value] of Object.entries({ ...mesh.env, ...env })) vi.stubEnv(name, value)
  let printed = ''
  const stream = {
    isTTY: true,
    write: (text: string) => {
      printed += text
    },
  }
  await runCommandLine(['node', 'keymesh', ...words], { out: stream, err: stream })
  return printed
}

describe('on a terminal', () => {
  it.skipIf(!hasScript)('a sweep says what it is at, and takes that away at the end', async () => {
    const seen = await bash(`script -qec 'stty cols 100; keymesh reconcile' /dev/null </dev/null`)
    expect(seen).toMatch(/broker-1: (reading the (store|broker)|reconciling), \d+/)
    expect(seen).toMatch(/broker-1: \d+ objects read, .* 2 changed/)
    const line = Math.max(...['reading the', 'reconciling'].map((phase) => seen.lastIndexOf(phase)))
    expect(seen.lastIndexOf(`${ESCAPE}[0K`)).toBeGreaterThan(line)
  })

  it.skipIf(!hasScript)('without a width, which a script may have, it says only what it came to', async () => {
    const seen = await bash(`script -qec 'stty cols 0; keymesh reconcile' /dev/null </dev/null`)
    expect(seen).toMatch(/^broker-1: \d+ objects read, .* 0 failed\s*$/)
  })

  it('there is colour, unless NO_COLOR says no', async () => {
    expect(await keymesh(['status'])).toContain(`${ESCAPE}[32m`)
    expect(await keymesh(['status'], { NO_COLOR: '1' })).not.toContain(ESCAPE)
    expect(await keymesh(['status', '--json'])).not.toContain(ESCAPE)
  })
})

describe('completion', () => {
  it('in bash offers names', async () => {
    await writeFile(join(directory, 'completion'), await keymesh(['completion', 'bash']))
    const script = `source completion; source completion; COMP_WORDS=(keymesh plan --registration '') COMP_CWORD=3
__keymesh_complete 2>/dev/null; echo "\${COMPREPLY[*]}"`
    expect(await bash(script)).toBe('app-a app-b\n')
  })

  it.each([
    [['rec'], 'reconcile\tmake the brokers match'],
    [['status', '--br'], '--broker\tonly this broker\n:4\n'],
    [['explain', 'registration', 'app-b'], 'app-b\t\n:4\n'],
    [['import', ''], ':0\n'],
  ])('of %j offers %s', async (words, offered) => {
    expect(await keymesh(['complete', '--', ...words])).toContain(offered)
  })

  it.each(['bash', 'zsh', 'fish', 'powershell'])('has a script for %s that calls the program', async (shell) => {
    expect((await keymesh(['completion', shell])).replaceAll("'", '')).toMatch(/keymesh complete --/)
  })

  it('has the names of brokers, too, and of none that would take long', async () => {
    expect(await completedNames({ env: mesh.env }, 'broker')).toEqual(['broker-1'])
    expect(await completedNames({ env: {} }, 'registration')).toEqual([])
    const away = { env: { DATABASE_URL: 'postgres://keymesh@127.0.0.1:1/keymesh' } }
    await expect(completedNames(away, 'broker')).rejects.toThrow()
  })
})
