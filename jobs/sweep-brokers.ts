import { brokerQueue } from '../src/queue/queue-names.ts'
import { spreadMs } from '../src/queue/schedule-ticks.ts'
import { DONE, type JobHandler } from './job-handler.ts'

/** Brokers begin one after another, each always at the same place of the window, so that they are not read at once. */
export const sweepBrokers: JobHandler<'sweep-brokers'> = async (_payload, { services, enqueue, sweepSpreadMs }) => {
  for (const broker of await services.usableBrokers()) {
    await enqueue.sweep(broker, 'sweep', spreadMs(brokerQueue(broker), sweepSpreadMs))
  }
  return DONE
}
