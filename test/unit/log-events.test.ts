import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createLogger } from '../../src/context.ts'
import { enterRun, withActivity } from '../../src/observability/activity.ts'
import { LIBRARY_EVENT, LOG_EVENTS } from '../../src/observability/log-events.ts'
import { VERSION } from '../../src/version.ts'

const repository = fileURLToPath(new URL('../../', import.meta.url))

const sources = ['src', 'jobs'].flatMap((folder) =>
  readdirSync(join(repository, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path: `${folder}/${path}`, text: readFileSync(join(repository, folder, path), 'utf8') })),
)

/** `log.warn(` or `request.log[level](`, and what the first argument begins with. */
const CALL = /\b#?log(?:\.(?:trace|debug|info|warn|error|fatal)|\[[^\]]+\])\(\s*(\{\s*event: '[^']*'|[^\n]*)/g

const calls = sources.flatMap(({ path, text }) =>
  [...text.matchAll(CALL)].map(([, first = '']) => ({
    path,
    event: /event: '([^']*)'/.exec(first)?.[1] ?? null,
    first,
  })),
)

describe('the events of log lines', () => {
  it('are named by every line that is logged', () => {
    expect(calls.length).toBeGreaterThan(20)
    expect(calls.filter(({ event }) => event === null)).toEqual([])
  })

  it('are those of the list, and no others', () => {
    const logged = new Set(calls.map(({ event }) => event))
    expect([...logged, LIBRARY_EVENT].toSorted()).toEqual(Object.keys(LOG_EVENTS).toSorted())
  })
})

describe('a log line', () => {
  const linesOf = async (work: (log: ReturnType<typeof createLogger>) => Promise<void>) => {
    const lines: string[] = []
    const write = (line: string): void => void lines.push(line)
    await work(createLogger({ logLevel: 'info', instance: 'test' }, { write }))
    return lines
  }

  it('of a library has an event, too', async () => {
    const [line = ''] = await linesOf(async (log) => log.info('Server listening'))
    expect(JSON.parse(line)).toMatchObject({ event: 'library', msg: 'Server listening' })
  })

  it('has the ids of what it belongs to, each once', async () => {
    const lines = await linesOf(async (log) => {
      await withActivity({ requestId: 'r-1', traceId: 't-1' }, async () => {
        log.child({ requestId: 'r-1' }).info({ event: 'http.answered' }, 'by the request itself')
        log.info({ event: 'queue.missed' }, 'by what it called')
      })
      await withActivity({ jobId: 'j-1' }, async () => {
        const run = async (id: string) => {
          await Promise.resolve()
          enterRun(id)
          await Promise.resolve()
          log.info({ event: 'run.finished', runId: id }, 'by the run')
        }
        await Promise.all([run('run-1'), run('run-2')])
        log.warn({ event: 'job.failed', jobId: 'j-1' }, 'by the job')
      })
      log.info({ event: 'service.stopping' }, 'by nobody')
    })
    const ids = lines.map((line) => {
      const { requestId, jobId, runId, traceId } = JSON.parse(line) as Record<string, string>
      expect([line, line.match(/"(requestId|jobId|runId)":/g)?.length ?? 0]).toEqual([
        line,
        new Set(line.match(/"(requestId|jobId|runId)":/g)).size,
      ])
      return [requestId, jobId, runId, traceId].map((id) => id ?? '-').join(' ')
    })
    expect(ids).toEqual(['r-1 - - t-1', 'r-1 - - t-1', '- j-1 run-1 -', '- j-1 run-2 -', '- j-1 - -', '- - - -'])
  })
})

it('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { version: string }
  expect(VERSION).toBe(version)
})
