import { KeymeshError } from '../src/domain/errors.ts'
import { isJobName, type JobName, parsePayload } from '../src/queue/job-payloads.ts'
import type { JobOutcome, RunningJob } from '../src/queue/job-queue.ts'
import { deliverNotifications } from './deliver-notifications.ts'
import type { JobContext, JobHandler } from './job-handler.ts'
import { pollCatalogue } from './poll-catalogue.ts'
import { pollNotifications } from './poll-notifications.ts'
import { pollRegistrations } from './poll-registrations.ts'
import { pruneRecords } from './prune-records.ts'
import { reconcilePair } from './reconcile-pair.ts'
import { reconcileRegistration } from './reconcile-registration.ts'
import { retireExpired } from './retire-expired.ts'
import { sweepBroker } from './sweep-broker.ts'
import { sweepBrokers } from './sweep-brokers.ts'
import { verifyBroker } from './verify-broker.ts'

const HANDLERS: { readonly [Name in JobName]: JobHandler<Name> } = {
  'poll-catalogue': pollCatalogue,
  'poll-registrations': pollRegistrations,
  'reconcile-registration': reconcileRegistration,
  'reconcile-pair': reconcilePair,
  'sweep-broker': sweepBroker,
  'sweep-brokers': sweepBrokers,
  'verify-broker': verifyBroker,
  'retire-expired': retireExpired,
  'prune-records': pruneRecords,
  'poll-notifications': pollNotifications,
  'deliver-notifications': deliverNotifications,
}

export type RunContext = Omit<JobContext, 'signal' | 'progress'>

/** Throws what the handler throws; the worker turns it into the job's fate. */
export async function runJob(job: RunningJob, context: RunContext): Promise<JobOutcome> {
  if (!isJobName(job.name)) throw unknownJob(job.name)
  return dispatch(job.name, job, { ...context, signal: job.signal, progress: job.progress })
}

function dispatch<Name extends JobName>(name: Name, job: RunningJob, context: JobContext): Promise<JobOutcome> {
  const handler: JobHandler<Name> = HANDLERS[name]
  return handler(parsePayload(name, job.data), context)
}

/** Retried: during a rolling update a newer program adds jobs that this one does not know yet. */
function unknownJob(name: string): KeymeshError {
  return new KeymeshError({
    code: 'JOB_UNKNOWN',
    fate: 'retry',
    message: `This program knows no job named ${JSON.stringify(name.slice(0, 80))}.`,
    hint: 'A newer program added it; update this one too.',
  })
}
