/**
 * A program that serves a data directory until its standard input ends. With `--write` it commits rows as fast as it can
 * and prints the number of each after its commit. Lines on standard output are JSON.
 */
import pg from 'pg'
import { codeOf, errorLine } from '../../src/domain/errors.ts'
import { startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts'

const say = (value: object): void => void process.stdout.write(`${JSON.stringify(value)}\n`)
const quiet = (): void => undefined
const [dataDirectory = '', mode] = process.argv.slice(2)

try {
  const database = await startEmbeddedPostgres({
    dataDirectory,
    log: { debug: quiet, info: quiet, warn: (fields, message) => say({ warning: message, ...fields }), error: quiet },
    unsafeFast: mode !== '--write',
  })
  const { connectionString, joined, clusterDirectory } = database
  say({ ready: true, connectionString, joined, clusterDirectory })
  if (mode === '--write') void writeRows(connectionString)
  process.stdin.resume().once('end', () => {
    database.stop().then(
      () => process.stdin.destroy(),
      (error: unknown) => say({ error: errorLine(error) }),
    )
  })
} catch (error) {
  say({ code: codeOf(error), error: errorLine(error) })
  process.exitCode = 1
}

async function writeRows(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query('create table if not exists load (number integer primary key, filler text not null)')
  for (let number = 1; ; number++) {
    await client.query("insert into load values ($1, repeat('x', 2000))", [number])
    say({ committed: number })
  }
}
