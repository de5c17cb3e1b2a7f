import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { Command } from 'commander'
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'
import { longSoak } from './settings.ts'
import { runSoak, type SoakOutcome } from './soak.ts'
import type { SoakPlace } from './soak-world.ts'

interface Options {
  readonly minutes: number
  readonly brokers: number
  readonly registrations: number
  readonly seed: number
  readonly databaseUrl?: string
  readonly redisUrl?: string
}

const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const CONNECTIONS = 400

await new Command('soak')
  .description('random life on a running service; a JSON line in the end, exit status 0 when nothing was wrong')
  .option('--minutes <count>', 'of random life', Number, 60)
  .option('--brokers <count>', 'simulated brokers', Number, 20)
  .option('--registrations <count>', 'at the beginning, and about as many later', Number, 2000)
  .option('--seed <number>', 'of another run, to see it again', Number, Date.now() % 1_000_000)
  .option('--database-url <url>', 'an empty PostgreSQL database instead of an embedded one')
  .option('--redis-url <url>', 'Redis or Valkey for the queue, of its own')
  .action(async (options: Options) => {
    const { report, problems, tail } = await withPlace(options, (place) =>
      runSoak(longSoak(options), place, (line) => process.stderr.write(`${line}\n`)),
    )
    if (problems.length > 0) process.stderr.write(failure({ report, problems, tail }))
    process.stdout.write(`${JSON.stringify(report)}\n`)
    process.exitCode = problems.length === 0 ? 0 : 1
  })
  .parseAsync(process.argv)

function failure({ report, problems, tail }: SoakOutcome): string {
  return ['', ...tail, '', ...problems, '', `To see it again: --seed ${report.seed} with the same options.`, ''].join(
    '\n',
  )
}

async function withPlace<Result>(
  { databaseUrl, redisUrl }: Options,
  run: (place: SoakPlace) => Promise<Result>,
): Promise<Result> {
  const redis = redisUrl === undefined ? {} : { redisUrl }
  if (databaseUrl !== undefined) return run({ connectionString: databaseUrl, ...redis })
  const directory = await mkdtemp(join(tmpdir(), 'keymesh-soak-'))
  // As root PostgreSQL runs as another user, who has to pass through.
  await chmod(directory, 0o711)
  try {
    const dataDirectory = join(directory, 'data')
    const postgres = await startEmbeddedPostgres({ dataDirectory, log: quiet, maxConnections: CONNECTIONS })
    try {
      return await run({ connectionString: postgres.connectionString, ...redis })
    } finally {
      await postgres.stop()
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
