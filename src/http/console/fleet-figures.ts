import type { Protocol } from '../../domain/catalogue.ts'
import { type AccountId, accountId as toAccountId } from '../../domain/ids.ts'
import type { JobCounts } from '../../queue/job-queue.ts'
import { listManagedBrokers } from '../../store/broker-settings.ts'
import { type ProtocolLogins, sumLoginsByProtocol } from '../../store/logins-view.ts'
import { type BrokerSums, sumRegistrations } from '../../store/registration-sums.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { type Remembered, remembered } from './remembered.ts'

/** What has to be counted over all registrations, by broker id. Null: it is being counted, or is not known. */
export interface FleetFigures {
  readonly registrations: ReadonlyMap<string, BrokerSums> | null
  readonly logins: ReadonlyMap<string, ReadonlyMap<Protocol, ProtocolLogins>> | null
  readonly queues: ReadonlyMap<string, JobCounts> | null
}

export interface FleetReader {
  read(accountId: AccountId): Promise<FleetFigures>
  /** Resolves when nothing is being counted. */
  idle(): Promise<void>
}

/** Counted apart from each other and from the pages, which show what is known in time. */
export function createFleetReader({ db, log, queueDepths }: HttpDependencies): FleetReader {
  const onError = (error: unknown): void =>
    log.warn({ event: 'console.figures-missing', err: error }, 'Figures for the console could not be read')
  const registrations = remembered({ make: (account) => sumRegistrations(db, account, null), onError })
  const logins = remembered({ make: (account) => sumLoginsByProtocol(db, account, null), onError })
  const queues: Remembered<ReadonlyMap<string, JobCounts>> | null =
    queueDepths === undefined
      ? null
      : remembered({
          make: async (account) => queueDepths(await listManagedBrokers(db, toAccountId(account))),
          onError,
        })
  return {
    read: async (accountId) => {
      const reading = [registrations.read(accountId), logins.read(accountId), queues?.read(accountId) ?? null] as const
      const [ofRegistrations, ofLogins, ofQueues] = await Promise.all(reading)
      return { registrations: ofRegistrations, logins: ofLogins, queues: ofQueues }
    },
    idle: async () => {
      await Promise.all([registrations.idle(), logins.idle(), queues?.idle()])
    },
  }
}
