import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import type { Context } from '../context.ts'
import { audit } from '../store/audit.ts'
import { type DeliveryView, readDelivery } from '../store/notification-deliveries.ts'
import { makeTest } from '../store/notification-digest.ts'
import { type EndpointPlace, findEndpoint } from '../store/notification-endpoints-view.ts'
import { cryptoRandom } from '../store/random-source.ts'
import type { CommandDependencies } from './command.ts'
import { HOST } from './first-administrator.ts'
import { explained } from './help.ts'

/** Another process may be sending just now. */
const TEST_PATIENCE_MS = 15_000

export function testCommand(dependencies: CommandDependencies): Command {
  const command = new Command('test')
    .description('send a test to an endpoint, once, and say what came of it')
    .argument('<endpoint>', 'its name or id')
    .option('--json', 'print one JSON document')
    .action(async (idOrName: string, _options: object, command: Command) => {
      const output = dependencies.output(command)
      const delivery = await dependencies.withContext(async (context) => {
        const place = await placeOf(context, idOrName)
        const { db, now } = context
        const id = await makeTest(db, place, { nowMs: now(), requestedBy: HOST.name, random: cryptoRandom })
        await record(context, 'notificationEndpoint.test', idOrName)
        await context.notifier.deliver(place, dependencies.signal)
        return await finished(context, id, dependencies.signal)
      })
      if (output.json) output.document(delivery)
      if (delivery.state !== 'delivered') dependencies.exitWith(1)
      output.line(
        delivery.state === 'delivered'
          ? `The receiver took it: HTTP ${delivery.lastStatus}.`
          : `Not delivered: ${delivery.lastError ?? 'another process is sending to it; `keymesh notifications deliveries` shows what comes of it.'}`,
      )
    })
  return explained(command, {
    notes: 'It is sent from this host. The endpoint must be switched on.',
    examples: ['keymesh notifications test pager'],
    exit: { 0: 'the receiver took it', 1: 'it did not, or there is no such endpoint' },
  })
}

async function finished({ db, accountId }: Context, id: string, signal: AbortSignal): Promise<DeliveryView> {
  const deadline = performance.now() + TEST_PATIENCE_MS
  for (;;) {
    const { body: _body, ...view } = await readDelivery(db, accountId, id)
    if (view.state !== 'pending' || performance.now() > deadline || signal.aborted) return view
    await delay(200)
  }
}

/** By name or id. Throws NOT_FOUND. */
export async function placeOf({ db, accountId }: Context, idOrName: string): Promise<EndpointPlace> {
  return { accountId, endpointId: (await findEndpoint(db, accountId, idOrName)).id }
}

export async function record({ db, accountId, now }: Context, what: string, subject: string): Promise<void> {
  await audit(db, { atMs: now(), accountId, who: HOST, what, subject, outcome: 'done' })
}
