import { posix } from 'node:path'
import type { ImportedModule, ParsedFile } from './source-file.ts'
import type { Violation } from './violation.ts'

interface Arrow {
  /** Folders and files that may be imported, beside the own folder. */
  readonly mayImport: readonly string[]
  /** The same, where only types may be taken. */
  readonly mayImportTypesOf?: readonly string[]
  /** Modules from outside of the project; all when absent. */
  readonly packages?: readonly string[]
}

const CORE: Arrow = { mayImport: ['src/domain'], packages: ['node:crypto'] }
const ADAPTER: Arrow = { mayImport: ['src/domain', 'src/reconcile'] }
const ADAPTERS = ['brokers', 'login', 'sources', 'store', 'secrets', 'queue', 'sandbox', 'portal-file', 'notifications']

/** A command opens nothing itself: connections, keys and brokers come with the context. */
const OF_A_COMMAND = [
  'src/domain',
  'src/reconcile',
  'src/store',
  'src/operations',
  'src/portal-file',
  'src/sandbox',
  'src/config.ts',
  'src/context.ts',
  'src/disposer.ts',
  'src/roles.ts',
  'src/key-rotation.ts',
  'src/backup.ts',
  'src/restore.ts',
]

/** What may import what: the picture of the design, folder by folder. The longest key that fits a file counts. */
const ARROWS: Readonly<Record<string, Arrow>> = {
  'src/domain': CORE,
  'src/reconcile': CORE,
  ...Object.fromEntries(ADAPTERS.map((name) => [`src/${name}`, ADAPTER])),
  // What a simulated broker does must not be learnt from the program that it tests.
  'src/sandbox': { mayImport: ['src/domain'] },
  // What operators ask for, on the store or on a service elsewhere: the command line and the API call it.
  'src/operations': {
    mayImport: ['src/domain', 'src/reconcile', 'src/store'],
    mayImportTypesOf: ['src/engine.ts'],
  },
  'src/config.ts': { mayImport: ['src/domain'] },
  // Told of what happens, by who made it; knows no adapter.
  'src/observability': {
    mayImport: ['src/domain', 'src/reconcile'],
    mayImportTypesOf: ['src/config.ts', 'src/store', 'src/queue'],
  },
  'src/disposer.ts': { mayImport: [] },
  'src/version.ts': { mayImport: [] },
  // The composition root, and what it is composed of, know every adapter.
  'src/context.ts': { mayImport: ['src', 'jobs'] },
  'src/engine.ts': { mayImport: ['src'] },
  'src/broker-connections.ts': { mayImport: ['src'] },
  'src/broker-circuits.ts': { mayImport: ['src'] },
  'src/urgent-runs.ts': { mayImport: [] },
  'src/broker-logins.ts': { mayImport: ['src'] },
  'src/login-gate.ts': { mayImport: ['src'] },
  'src/remote-follower.ts': { mayImport: ['src'] },
  'src/notifier.ts': { mayImport: ['src'] },
  'src/doctor': { mayImport: ['src'] },
  'src/services.ts': { mayImport: ['src', 'jobs'] },
  'src/roles.ts': { mayImport: ['src', 'src/http', 'jobs'] },
  'src/key-rotation.ts': { mayImport: ['src'] },
  'src/backup.ts': { mayImport: ['src'] },
  'src/restore.ts': { mayImport: ['src'] },
  'src/main.ts': { mayImport: ['src/domain', 'src/config.ts', 'src/context.ts', 'src/cli'] },
  'src/cli': {
    mayImport: ['src/version.ts', ...OF_A_COMMAND, 'src/demo', 'src/doctor'],
    mayImportTypesOf: ['src/engine.ts', 'src/queue'],
  },
  'src/demo': { mayImport: OF_A_COMMAND, mayImportTypesOf: ['src/engine.ts', 'src/queue'] },
  'src/http': {
    mayImport: ['src/domain', 'src/reconcile', 'src/store', 'src/operations', 'src/portal-file', 'src/context.ts'],
    mayImportTypesOf: ['src/config.ts', 'src/engine.ts', 'src/queue'],
  },
  jobs: {
    mayImport: ['src/domain', 'src/queue', 'src/context.ts', 'src/disposer.ts'],
    mayImportTypesOf: ['src/reconcile'],
  },
}

/** Nothing but these imports them: an arrow to `src` as a whole does not reach the front. */
const FRONT = ['src/main.ts', 'src/cli', 'src/demo', 'src/http']

export function importViolations(file: ParsedFile): readonly Violation[] {
  const home = longestMatch(file.path, Object.keys(ARROWS))
  const arrow = home === null ? undefined : ARROWS[home]
  if (home === null || arrow === undefined) {
    return [{ path: file.path, line: 1, message: 'stands in a folder whose imports no rule names' }]
  }
  return file.imports.flatMap((imported) => {
    const problem = problemOf(file.path, home, arrow, imported)
    return problem === null ? [] : [{ path: file.path, line: imported.line, message: problem }]
  })
}

function problemOf(path: string, home: string, arrow: Arrow, { specifier, typeOnly }: ImportedModule): string | null {
  if (!specifier.startsWith('.')) {
    const known = arrow.packages?.includes(specifier) ?? specifier !== '(computed)'
    return known ? null : `must not import ${specifier}`
  }
  const target = posix.join(posix.dirname(path), specifier)
  if (!target.endsWith('.ts')) return `must import ${target} with the ending .ts`
  if (isWithin(target, home)) return null
  if (FRONT.some((front) => isWithin(target, front) && !arrow.mayImport.includes(front))) {
    return `must not import ${target}`
  }
  if (arrow.mayImport.some((folder) => isWithin(target, folder))) return null
  if (!arrow.mayImportTypesOf?.some((folder) => isWithin(target, folder))) return `must not import ${target}`
  return typeOnly ? null : `may import types of ${target} and nothing else`
}

const isWithin = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

function longestMatch(path: string, folders: readonly string[]): string | null {
  const fitting = folders.filter((folder) => isWithin(path, folder))
  return fitting.toSorted((one, other) => other.length - one.length)[0] ?? null
}
