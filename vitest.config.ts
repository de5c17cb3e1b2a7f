import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['test/helpers/global-setup.ts'],
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // More than cores: most tests wait, for a database, a deadline or a process.
    maxWorkers: 4,
    // Loading the libraries anew for each file takes a fifth of all the time. A file may therefore leave nothing behind in a
    // module, in the environment or in a global.
    isolate: false,
  },
})
