import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

const SOAK = 'test/soak/soak.test.ts'

type Options = NonNullable<TestProjectInlineConfiguration['test']>

/** Not inherited with `extends`: each project would set everything up once more. */
const project = (options: Options): TestProjectInlineConfiguration => ({
  test: {
    // For a test that hangs; a busy machine takes several times as long as a quiet one.
    testTimeout: 60_000,
    hookTimeout: 180_000,
    pool: 'forks',
    // Loading the libraries anew for each file takes a fifth of all the time. A file may therefore leave nothing behind in a
    // module, in the environment or in a global.
    isolate: false,
    // More than cores: most tests wait, for a database, a deadline or a process.
    maxWorkers: 4,
    ...options,
  },
})

export default defineConfig({
  test: {
    globalSetup: ['test/helpers/global-setup.ts'],
    projects: [
      project({ name: 'tests', include: ['test/**/*.test.ts'], exclude: [SOAK] }),
      // Alone on the machine, after all others: what is late there is late because of the service.
      project({ name: 'soak', include: [SOAK], sequence: { groupOrder: 1 } }),
    ],
  },
})
