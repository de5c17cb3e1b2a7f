import { Command, CommanderError } from 'commander'
import { asksForNoColour, readEnv, toConfig, toServiceAddress } from '../config.ts'
import { codeOf, KeymeshError } from '../domain/errors.ts'
import { databaseTrouble } from '../store/database-trouble.ts'
import { VERSION } from '../version.ts'
import { adoptCommand } from './adopt.ts'
import { backupCommand } from './backup.ts'
import type { CommandDependencies } from './command.ts'
import { type CompletedNames, completedNames } from './completed-names.ts'
import { completeCommand, completionCommand } from './completion.ts'
import { confirmCommand } from './confirm.ts'
import { demoCommand } from './demo.ts'
import { doctorCommand } from './doctor.ts'
import { driftCommand } from './drift.ts'
import { explainCommand } from './explain.ts'
import { explained } from './help.ts'
import { importCommand } from './import.ts'
import { keysCommand } from './keys.ts'
import { notificationsCommand } from './notifications.ts'
import { orphansCommand } from './orphans.ts'
import { createOutput, type Output, type Streams } from './output.ts'
import { pauseCommand, resumeCommand } from './pause.ts'
import { planCommand } from './plan.ts'
import { pullCommand } from './pull.ts'
import { reapplyCommand } from './reapply.ts'
import { reconcileCommand } from './reconcile.ts'
import { restoreCommand } from './restore.ts'
import { sandboxCommand } from './sandbox.ts'
import { serveCommand } from './serve.ts'
import { refuseElsewhere, serviceOptions, understandUrl, worksRemotely } from './service-option.ts'
import { statusCommand } from './status.ts'
import { usersCommand } from './users.ts'
import { verifyCommand } from './verify.ts'

type Status = 0 | 1 | 2

/** Parses the arguments, runs one command and answers the exit status. */
export async function runCommandLine(argv: readonly string[], given: Streams): Promise<Status> {
  const stop = stopSignal()
  const environment = readEnv()
  const streams: Streams = { ...given, noColour: given.noColour ?? asksForNoColour(environment) }
  const outputs: Output[] = []
  let status: Status = 0
  const exitWith = (next: Status): void => {
    if (next > status) status = next
  }
  const dependencies: CommandDependencies = {
    withContext: async (work) => {
      // Loaded when it is needed: help and completion answer at once.
      const { openContext } = await import('../context.ts')
      const context = await openContext(toConfig(environment))
      try {
        return await work(context)
      } finally {
        await context[Symbol.asyncDispose]()
      }
    },
    service: (command) => {
      refuseElsewhere(command, environment.env.KEYMESH_URL)
      return worksRemotely(command) ? toServiceAddress(environment, serviceOptions(command)) : null
    },
    output: (command) => {
      const output = createOutput(streams, { json: command.opts<{ json?: boolean }>().json === true })
      outputs.push(output)
      return output
    },
    exitWith,
    signal: stop.signal,
  }
  try {
    await createProgram(dependencies, streams).parseAsync(argv)
  } catch (error) {
    for (const output of outputs) output.endProgress()
    exitWith(stop.signal.aborted && isStop(error) ? reportStop(streams) : report(error, streams))
  } finally {
    for (const output of outputs) output.endProgress()
    stop.release()
  }
  return status
}

/** The whole program. */
export function createProgram(dependencies: CommandDependencies, streams: Streams): Command {
  const program = createCommands(dependencies, streams)
  const completion = {
    program: () => createCommands(dependencies, streams),
    names: (what: CompletedNames) => completedNames(readEnv(), what),
    write: (text: string) => streams.out.write(text),
    output: dependencies.output,
  }
  program.addCommand(inheriting(completionCommand(completion), program))
  program.addCommand(inheriting(completeCommand(completion), program), { hidden: true })
  return program
}

function createCommands(dependencies: CommandDependencies, streams: Streams): Command {
  const program = new Command('keymesh')
    .description('keeps the client credentials, ACL profiles and queues of every broker in step with the catalogue')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => streams.out.write(text),
      writeErr: (text) => streams.err.write(text),
    })
    .showHelpAfterError('(keymesh --help shows what there is)')
  const commands = [
    serveCommand(dependencies),
    importCommand(dependencies),
    pullCommand(dependencies),
    explainCommand(dependencies),
    planCommand(dependencies),
    reconcileCommand(dependencies),
    reapplyCommand(dependencies),
    confirmCommand(dependencies),
    adoptCommand(dependencies),
    orphansCommand(dependencies),
    pauseCommand(dependencies),
    resumeCommand(dependencies),
    driftCommand(dependencies),
    statusCommand(dependencies),
    verifyCommand(dependencies),
    keysCommand(dependencies),
    usersCommand(dependencies),
    notificationsCommand(dependencies),
    backupCommand(dependencies),
    restoreCommand(dependencies),
    doctorCommand(dependencies),
    demoCommand(dependencies),
    sandboxCommand(),
  ]
  for (const command of commands) program.addCommand(inheriting(command, program))
  program.hook('preAction', (_program, command) => {
    dependencies.service?.(command)
  })
  return explained(program, {
    examples: ['keymesh demo --once', 'keymesh import portal.yaml', 'keymesh status --url https://keymesh.example.com'],
    exit: { 0: 'done', 1: 'something needs attention, waits for a person or failed' },
  })
}

/** What is set on the program holds for commands below commands too: none of them ends the process by itself. */
function inheriting(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent)
  understandUrl(command)
  for (const child of command.commands) inheriting(child, command)
  return command
}

/** A stop ends work with errors of any kind. One of ours that is about something else came before it, and is told. */
const isStop = (error: unknown): boolean => !(error instanceof KeymeshError) || error.code === 'ABORTED'

function reportStop(streams: Streams): Status {
  streams.err.write('Stopped as asked; what was done is kept.\n')
  return 1
}

function report(thrown: unknown, streams: Streams): Status {
  const error = databaseTrouble(thrown) ?? thrown
  // Commander has printed help, the version, or what is wrong with the arguments.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof KeymeshError) {
    streams.err.write(`${error.message}\n${error.hint === undefined ? '' : `${error.hint}\n`}`)
    return error.code === 'INVALID_INPUT' ? 2 : 1
  }
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
  streams.err.write(`keymesh met an error it does not know (${codeOf(error)}). Please report it:\n${detail}\n`)
  return 1
}

function stopSignal(): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController()
  const stop = (): void => controller.abort(new Error('asked to stop'))
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
    },
  }
}
