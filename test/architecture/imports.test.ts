import { describe, expect, it } from 'vitest'
import { importViolations } from './import-rules.ts'
import { parseSourceFile, readSourceFiles } from './source-file.ts'
import { sourceViolations } from './source-rules.ts'
import { violationText } from './violation.ts'

const program = readSourceFiles(['src', 'jobs']).map(parseSourceFile)
const tests = readSourceFiles(['test']).map(parseSourceFile)

describe('the project', () => {
  it('has its files where they are looked for', () => {
    const folders = new Set(program.map(({ path }) => path.split('/').slice(0, 2).join('/')))
    expect([...folders]).toEqual(expect.arrayContaining(['src/domain', 'src/reconcile', 'src/store', 'src/cli']))
    expect(program.length).toBeGreaterThan(100)
    expect(program.flatMap(({ imports }) => imports).length).toBeGreaterThan(program.length)
  })

  it('imports in the direction of the design', () => {
    expect(program.flatMap(importViolations).map(violationText)).toEqual([])
  })

  it('keeps effects out of the pure folders, the environment in one file, and types honest', () => {
    expect([...program, ...tests].flatMap(sourceViolations).map(violationText)).toEqual([])
  })
})

const check = (path: string, text: string): readonly string[] => {
  const file = parseSourceFile({ path, text })
  return [...importViolations(file), ...sourceViolations(file)].map(({ message }) => message)
}

// Joined here, so that this file does not say it itself.
const ignore = ['@ts', 'ignore'].join('-')

/** One wrong file for each rule, and what is said of it. */
const WRONG: Readonly<Record<string, readonly [path: string, text: string, message: string]>> = {
  'domain imports the core': [
    'src/domain/topics.ts',
    "import type { Plan } from '../reconcile/plan.ts'",
    'must not import src/reconcile/plan.ts',
  ],
  'domain imports a package': ['src/domain/ids.ts', "import { z } from 'zod'", 'must not import zod'],
  'domain imports the platform': [
    'src/domain/ids.ts',
    "import { readFile } from 'node:fs/promises'",
    'must not import node:fs/promises',
  ],
  'the core imports an adapter': [
    'src/reconcile/sweep.ts',
    "import { Store } from '../store/pairs.ts'",
    'must not import src/store/pairs.ts',
  ],
  'the core imports a package': ['src/reconcile/apply.ts', "import retry from 'p-retry'", 'must not import p-retry'],
  'the core imports an adapter when it runs': [
    'src/reconcile/apply.ts',
    "export const load = () => import('../brokers/solace/semp-client.ts')",
    'must not import src/brokers/solace/semp-client.ts',
  ],
  'the core imports what only the running program knows': [
    'src/reconcile/apply.ts',
    'export const load = (name: string) => import(name)',
    'must not import (computed)',
  ],
  'the core names a type of an adapter in place': [
    'src/reconcile/ports.ts',
    "export type Db = import('../store/database.ts').Database",
    'must not import src/store/database.ts',
  ],
  'an adapter exports what is another adapter’s': [
    'src/queue/queue-names.ts',
    "export type { Database } from '../store/database.ts'\nexport const one = 1",
    'must not import src/store/database.ts',
  ],
  'the sandbox imports the core': [
    'src/sandbox/sandbox.ts',
    "import type { BrokerPort } from '../reconcile/ports.ts'",
    'must not import src/reconcile/ports.ts',
  ],
  'an adapter imports the configuration': [
    'src/store/database.ts',
    "import type { Config } from '../config.ts'",
    'must not import src/config.ts',
  ],
  'an adapter imports the context': [
    'src/portal-file/parse-portal-file.ts',
    "import type { Context } from '../context.ts'",
    'must not import src/context.ts',
  ],
  'the configuration imports an adapter': [
    'src/config.ts',
    "import { parseKeys } from './secrets/key-ring.ts'",
    'must not import src/secrets/key-ring.ts',
  ],
  'the context imports a command': [
    'src/context.ts',
    "import { table } from './cli/output.ts'",
    'must not import src/cli/output.ts',
  ],
  'a command imports a broker': [
    'src/cli/plan.ts',
    "import { createSolaceBroker } from '../brokers/solace/solace-broker.ts'",
    'must not import src/brokers/solace/solace-broker.ts',
  ],
  'a command imports more of the queue than types': [
    'src/cli/serve.ts',
    "import { openQueueBackend } from '../queue/queue-backend.ts'",
    'may import types of src/queue/queue-backend.ts and nothing else',
  ],
  'a job imports the store': [
    'jobs/sweep-broker.ts',
    "import { readPairs } from '../src/store/pairs.ts'",
    'must not import src/store/pairs.ts',
  ],
  'a job imports more of the core than types': [
    'jobs/sweep-broker.ts',
    "import { type Pair, sweepBroker } from '../src/reconcile/sweep.ts'",
    'may import types of src/reconcile/sweep.ts and nothing else',
  ],
  'the program imports a test': [
    'src/store/pairs.ts',
    "import { withDatabase } from '../../test/helpers/database.ts'",
    'must not import test/helpers/database.ts',
  ],
  'a new folder has no rule': [
    'src/reports/weekly.ts',
    'export const one = 1',
    'stands in a folder whose imports no rule names',
  ],
  'an import has another ending': [
    'src/store/pairs.ts',
    "import { one } from './one.js'",
    'must import src/store/one.js with the ending .ts',
  ],
  'the environment is read': [
    'src/queue/redis-engine.ts',
    'export const url = process.env.REDIS_URL',
    'must not read the environment; src/config.ts does',
  ],
  'the environment is taken apart': [
    'src/cli/demo.ts',
    'const { env } = process\nexport const url = env.REDIS_URL',
    'must not read the environment; src/config.ts does',
  ],
  'the environment is imported': [
    'src/cli/demo.ts',
    "import { env } from 'node:process'\nexport const url = env.REDIS_URL",
    'must not read the environment; src/config.ts does',
  ],
  'a file only exports again': [
    'src/queue/queue.ts',
    "export { one } from './one.ts'\nexport type { Two } from './two.ts'",
    'is a barrel: it only exports again',
  ],
  'a file imports to export again': [
    'src/queue/queue.ts',
    "import { one } from './one.ts'\nexport { one }",
    'is a barrel: it only exports again',
  ],
  'a file exports all of another': [
    'src/queue/queue.ts',
    "export * from './one.ts'\nexport const two = 2",
    'must not use export *',
  ],
  'a file is named utils': ['src/store/utils.ts', 'export const one = 1', 'must say what it holds, "utils" does not'],
  'a folder is named helpers': [
    'src/store/helpers/one.ts',
    'export const one = 1',
    'must say what it holds, "helpers" does not',
  ],
  'a file is not in kebab-case': ['src/store/brokerStatus.ts', 'export const one = 1', 'must be named in kebab-case'],
  'domain reads the clock': [
    'src/domain/visibility.ts',
    'export const now = () => Date.now()',
    'is pure and must not use Date.now',
  ],
  'domain reads the clock by another name': [
    'src/domain/visibility.ts',
    'export const now = () => new Date()',
    'is pure and must not use new Date()',
  ],
  'the core rolls dice': [
    'src/reconcile/policy.ts',
    "export const chance = Math['random']()",
    'is pure and must not use Math.random',
  ],
  'domain makes random names': [
    'src/domain/names.ts',
    "import { createHash, randomBytes } from 'node:crypto'\nexport const name = () => [createHash, randomBytes(8)]",
    'is pure and must not use randomBytes of node:crypto',
  ],
  'the core waits': [
    'src/reconcile/apply.ts',
    'export const wait = (run: () => void) => setTimeout(run, 10)',
    'is pure and must not use setTimeout',
  ],
  'the core fetches': [
    'src/reconcile/observe.ts',
    "export const get = () => globalThis && fetch('http://localhost')",
    'is pure and must not use fetch',
  ],
  'the core logs': [
    'src/reconcile/diff.ts',
    "export const say = () => console.log('x')",
    'is pure and must not use console',
  ],
  'domain asks the process': [
    'src/domain/errors.ts',
    'export const pid = () => process.pid',
    'is pure and must not use process',
  ],
  'a type is any': ['src/store/pairs.ts', 'export const one: any = 1', 'must not use the type any'],
  'a test casts to any': ['test/unit/names.test.ts', 'export const one = [] as any[]', 'must not use the type any'],
  'a check of types is switched off': [
    'jobs/run-job.ts',
    `// ${ignore}\nexport const one = 1`,
    `must not say ${ignore}`,
  ],
}

/** What looks like a wrong file and is none. */
const RIGHT: Readonly<Record<string, readonly [path: string, text: string]>> = {
  'a comment or a text that mentions an import or an effect': [
    'src/domain/ids.ts',
    `// import { z } from 'zod'; Date.now()
/* process.env.HOME */
export const text = "import { z } from 'zod'; any"
export const template = \`export * from './one.ts' \${text} setTimeout()\``,
  ],
  'properties that are named like effects': [
    'src/reconcile/ports.ts',
    'export interface Effects { readonly process: string; fetch(): void }\nexport const of = (it: Effects) => ({ fetch: it.fetch, process: it.process })',
  ],
  'a time that was given': ['src/domain/visibility.ts', 'export const date = (ms: number) => new Date(ms)'],
  'a hash': [
    'src/domain/names.ts',
    "import { createHash } from 'node:crypto'\nexport const hash = createHash('sha256')",
  ],
  'a type of the core in a job': [
    'jobs/sweep-broker.ts',
    "import { type Pair } from '../src/reconcile/store-port.ts'\nexport const ids = (pair: Pair) => pair",
  ],
  'the environment in the configuration': ['src/config.ts', 'export const env = { ...process.env }'],
  'an entry point without exports': ['src/main.ts', "import { runCli } from './cli/run-cli.ts'\nawait runCli()"],
}

describe('the rules', () => {
  it.each(Object.entries(WRONG))('notice when %s', (_sentence, [path, text, message]) => {
    const found = path.startsWith('test/')
      ? sourceViolations(parseSourceFile({ path, text })).map((violation) => violation.message)
      : check(path, text)
    expect(found).toEqual([message])
  })

  it.each(adapterPairs())('notice when the adapter %s imports %s', (from, to) => {
    const message = `must not import src/${to}/one.ts`
    expect(check(`src/${from}/two.ts`, `import type { One } from '../${to}/one.ts'`)).toEqual([message])
  })

  it.each(Object.entries(RIGHT))('let pass %s', (_sentence, [path, text]) => {
    expect(check(path, text)).toEqual([])
  })

  it('refuse to pass a file that cannot be parsed', () => {
    expect(() => parseSourceFile({ path: 'src/domain/ids.ts', text: 'import { from' })).toThrow()
  })
})

function adapterPairs(): (readonly [string, string])[] {
  const adapters = ['brokers', 'login', 'sources', 'store', 'secrets', 'queue', 'sandbox', 'portal-file']
  return adapters.flatMap((from) => adapters.filter((to) => to !== from).map((to) => [from, to] as const))
}
