import { Command, InvalidArgumentError } from 'commander'
import { InvalidInputError } from '../domain/errors.ts'
import { audit } from '../store/audit.ts'
import {
  DELIVERY_STATES,
  type DeliveryState,
  type DeliveryView,
  listDeliveries,
  resendDead,
  resendDelivery,
} from '../store/notification-deliveries.ts'
import { findEndpoint } from '../store/notification-endpoints-view.ts'
import type { CommandDependencies } from './command.ts'
import { HOST } from './first-administrator.ts'
import { explained } from './help.ts'
import { parseCount } from './options.ts'
import { table } from './output.ts'

const DEFAULT_SHOWN = 50

interface ListOptions {
  readonly endpoint?: string
  readonly state?: DeliveryState
  readonly limit: number
}

export function deliveriesCommand(dependencies: CommandDependencies): Command {
  const command = new Command('deliveries')
    .description('show what was sent, waits to be sent, or is a dead letter; newest first')
    .option('--endpoint <endpoint>', 'of this endpoint')
    .option('--state <state>', `${DELIVERY_STATES.join(', ')}`, parseState)
    .option('--limit <count>', 'at most this many', parseCount, DEFAULT_SHOWN)
    .option('--json', 'print one JSON document per delivery')
    .action(async ({ endpoint, state, limit }: ListOptions, command: Command) => {
      const output = dependencies.output(command)
      const found = await dependencies.withContext(async ({ db, accountId }) => {
        const endpointId = endpoint === undefined ? undefined : (await findEndpoint(db, accountId, endpoint)).id
        const filter = {
          accountId,
          ...(endpointId === undefined ? {} : { endpointId }),
          ...(state === undefined ? {} : { state }),
        }
        return await listDeliveries(db, filter, { limit, offset: 0 })
      })
      if (output.json) {
        for (const each of found.deliveries) output.document(each)
        return
      }
      if (found.count === 0) {
        output.line('There are no such deliveries.')
        return
      }
      const rows = found.deliveries.map((each) => [
        each.id,
        new Date(each.createdAtMs).toISOString(),
        each.test ? 'test' : String(each.notifications),
        each.state,
        String(each.attempts),
        whatCame(each),
      ])
      output.line(table(['delivery', 'made', 'tells', 'state', 'attempts', 'last attempt'], rows, output.paint))
      if (found.count > rows.length) output.line(`${rows.length} of ${found.count}; --limit shows more.`)
    })
  return explained(command, {
    examples: ['keymesh notifications deliveries --state dead', 'keymesh notifications deliveries --endpoint pager'],
    exit: { 0: 'shown', 1: 'there is no such endpoint' },
  })
}

const whatCame = ({ lastError, lastStatus, nextAttemptAtMs, attempts }: DeliveryView): string => {
  const next = nextAttemptAtMs === null || attempts === 0 ? '' : ` Again at ${new Date(nextAttemptAtMs).toISOString()}.`
  return lastError === null ? (lastStatus === null ? '' : `HTTP ${lastStatus}`) : `${lastError}${next}`
}

export function resendCommand(dependencies: CommandDependencies): Command {
  const command = new Command('resend')
    .description('send a delivery again, or all dead letters of an endpoint')
    .argument('[delivery]', 'its id')
    .option('--dead <endpoint>', 'all dead letters of this endpoint')
    .option('--json', 'print one JSON document')
    .action(async (id: string | undefined, { dead }: { readonly dead?: string }, command: Command) => {
      const output = dependencies.output(command)
      if ((id === undefined) === (dead === undefined)) {
        throw new InvalidInputError('The command line', [{ message: 'give the id of a delivery, or --dead' }])
      }
      const count = await dependencies.withContext(async ({ db, accountId, config, now }) => {
        const times = { nowMs: now(), retryMs: config.notifications.retryMs }
        const entry = { atMs: now(), accountId, who: HOST, outcome: 'done' } as const
        if (dead === undefined) {
          await resendDelivery(db, accountId, id ?? '', times)
          await audit(db, { ...entry, what: 'notificationDelivery.resend', subject: id ?? '' })
          return 1
        }
        const place = { accountId, endpointId: (await findEndpoint(db, accountId, dead)).id }
        const resent = await resendDead(db, place, times)
        await audit(db, { ...entry, what: 'notificationDelivery.resendDead', subject: dead })
        return resent
      })
      output.line(`To be sent again: ${count}. The running service sends within seconds.`)
      if (output.json) output.document({ count })
    })
  return explained(command, {
    notes: 'A delivery keeps its id: a receiver that had it already knows it by that.',
    examples: ['keymesh notifications resend --dead pager'],
    exit: { 0: 'it is sent again', 1: 'there is no such delivery or endpoint, or it is switched off' },
  })
}

/** For commander. */
function parseState(text: string): DeliveryState {
  const state = DELIVERY_STATES.find((known) => known === text)
  if (state === undefined) throw new InvalidArgumentError(`give ${DELIVERY_STATES.join(', ')}`)
  return state
}
