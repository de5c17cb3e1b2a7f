import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../helpers/database.ts'
import { shortSoak } from './settings.ts'
import { runSoak } from './soak.ts'

/** It runs alone: beside the other tests, what is late there is not late because of the service. */
describe('a minute of random life', () => {
  it('leaves nothing wrong, on brokers, in the store, in the log and in memory', async () => {
    const database = await createTestDatabase()
    try {
      const said: string[] = []
      const place = { connectionString: database.connectionString }
      const { report, problems, tail } = await runSoak(shortSoak({ seed: 7 }), place, (line) => said.push(line))
      expect(problems, [...said, ...tail, `seed ${report.seed}`].join('\n')).toEqual([])
      expect(report.verdict).toBe('passed')
    } finally {
      await database.drop()
    }
  }, 300_000)
})
