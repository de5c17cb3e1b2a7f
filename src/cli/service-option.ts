import { type Command, Option } from 'commander'
import type { ServiceOptions } from '../config.ts'
import { InvalidInputError } from '../domain/errors.ts'

const operating = new WeakSet<Command>()
/** Commands that neither the store nor a service concerns. */
const anywhere = new WeakSet<Command>()

/** The command works on the store of this host, or on a running service that it is pointed to. */
export function onStoreOrService(command: Command): Command {
  operating.add(command)
  return command
    .option('--url <address>', 'ask the running service there, with the token in KEYMESH_TOKEN; or set KEYMESH_URL')
    .option('--allow-plain-http', 'send the token unencrypted, to an http:// address on another host')
}

export function whereverItIs(command: Command): Command {
  anywhere.add(command)
  return command
}

export const worksRemotely = (command: Command): boolean => operating.has(command)

/** So that the commands that need this host say so, instead of not knowing the option. */
export function understandUrl(command: Command): void {
  if (!operating.has(command) && command.commands.length === 0) {
    command.addOption(new Option('--url <address>').hideHelp())
  }
}

export const serviceOptions = (command: Command): ServiceOptions => command.opts<ServiceOptions>()

/** Throws InvalidInputError when the command is pointed to a service, and works on its own host only. */
export function refuseElsewhere(command: Command, environmentUrl: string | undefined): void {
  if (operating.has(command) || anywhere.has(command)) return
  const given = serviceOptions(command).url !== undefined ? '--url' : 'KEYMESH_URL'
  if (given === 'KEYMESH_URL' && (environmentUrl ?? '') === '') return
  throw new InvalidInputError('The command line', [
    {
      path: given,
      message: `\`keymesh ${pathOf(command)}\` works on the host and the store of the service itself; run it there, without ${given}`,
    },
  ])
}

/** The words after `keymesh`. */
export function pathOf(command: Command): string {
  const words: string[] = []
  for (let each: Command = command; each.parent !== null; each = each.parent) words.unshift(each.name())
  return words.join(' ')
}
