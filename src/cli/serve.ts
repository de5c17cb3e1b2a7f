import { Command } from 'commander'
import type { Context } from '../context.ts'
import { Disposer } from '../disposer.ts'
import type { CommandDependencies } from './command.ts'
import { createFirstAdministrator } from './first-administrator.ts'
import { explained } from './help.ts'
import type { Output } from './output.ts'

export function serveCommand(dependencies: CommandDependencies): Command {
  const command = new Command('serve')
    .description('run the service: the API, the worker and the scheduler, until SIGTERM or SIGINT')
    .option('--json', 'print a first administrator as one JSON document')
    .action(async (_options: object, command: Command) => {
      const output = dependencies.output(command)
      await dependencies.withContext(async (context) => {
        const lost = await serve(context, dependencies.signal, output)
        if (lost !== null) throw lost
      })
    })
  return explained(command, {
    notes: `KEYMESH_ROLES says which roles this process holds; any number of processes may share a database.
The API listens on KEYMESH_HOST and PORT (8080). The first start without users creates an administrator, named by
KEYMESH_ADMIN_USERNAME, with the password of KEYMESH_ADMIN_PASSWORD or one that is printed once on standard output.
The log is JSON lines on standard error. On SIGTERM it takes no more jobs, lets those that run end, and leaves the rest to
the others or to the next start.`,
    examples: ['keymesh serve', 'KEYMESH_ROLES=worker keymesh serve'],
    exit: { 0: 'stopped as asked', 1: 'the database was lost, or the start failed' },
  })
}

/** Runs the roles until the signal; answers why it ended early, or null. */
async function serve(context: Context, signal: AbortSignal, output: Output): Promise<Error | null> {
  const { openQueue, startApi, startHealth, startScheduler, startWorkerRole, watchProcess } = await import(
    '../roles.ts'
  )
  const { config, log } = context
  const running = new Disposer()
  try {
    const queue = await openQueue(context)
    running.defer(() => queue.backend.close())
    watchProcess(context)
    if (config.metricsPort !== null) {
      const health = await startHealth(context, queue, config.metricsPort)
      running.defer(health.stop)
      log.info({ event: 'health.listening', url: health.url }, 'Health and metrics are served')
    }
    if (config.roles.includes('api')) {
      await createFirstAdministrator(context, output)
      const api = await startApi(context, queue)
      running.defer(api.stop)
      log.info({ event: 'api.listening', url: api.url }, 'The API listens')
    }
    if (config.roles.includes('worker')) running.defer(await startWorkerRole(context, queue))
    if (config.roles.includes('scheduler')) running.defer(await startScheduler(context, queue))
    log.info({ event: 'service.started', roles: config.roles }, 'Keymesh is running')
    return await Promise.race([aborted(signal), context.databaseLost])
  } finally {
    log.info({ event: 'service.stopping' }, 'Keymesh is stopping')
    await running.dispose()
  }
}

function aborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    // An abort listener does not keep the process up; with nothing else to do, this does.
    const timer = setInterval(() => undefined, 60_000)
    const end = (): void => {
      clearInterval(timer)
      resolve(null)
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
