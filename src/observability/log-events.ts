/** Every event that a log line names: `event` is one of these, and the message says it in words. A test compares them with the code. */
export const LOG_EVENTS = {
  'service.started': 'All roles of the process are at work.',
  'service.stopping': 'The process was asked to stop, or lost its database.',
  'api.listening': 'The API takes calls; `url` says where.',
  'health.listening': 'Health and metrics are served; `url` says where.',
  'http.answered': 'A request was answered: `method`, `route` (its pattern), `status`, `durationMs`, who called.',
  'http.refused': 'A request was refused (4xx): `code`, `errorId`.',
  'http.failed': 'A request failed (5xx): `code`, `errorId` as in the answer, `err`.',
  'audit.missed': 'The audit trail could not be written for a call; a secret is not shown then.',
  'console.figures-missing': 'A page of the console was shown without its figures, which could not be read.',
  'console.chart-missing': 'A page of the console was shown without its chart, which could not be read.',
  'run.finished':
    'A run of one registration on one broker ended: `outcome`, `steps`, `held`, `drift`, `code` of its error. Level debug when there was nothing to do, and in commands.',
  'sweep.finished': 'A sweep of a broker ended: `outcome`, `durationMs`.',
  'broker.resting': 'A broker failed several times in a row; it is left alone for a while.',
  'job.failed':
    'An attempt of a job failed: `fate` says whether it is tried again (`retry`), waits (`wait`) or not (`stop`).',
  'queue.error': 'The connection to the queue met an error; it recovers by itself.',
  'queue.missed': 'A job was not added in time; the poll finds the work.',
  'worker.error': 'The worker met an error outside of a job, such as when it looked for new brokers.',
  'worker.impatient': 'The process stopped before all jobs ended; they run again elsewhere.',
  'schedule.error': 'A schedule could not fire; it is tried again.',
  'remote.failed': 'Another service whose catalogue is followed could not be read.',
  'remote.followed': 'Its catalogue changed, and so did ours.',
  'remote.warning': 'Its catalogue holds something that cannot be used.',
  'notification.not-delivered':
    'A notification was not taken; `fate` says whether it is tried again (`retry`) or not (`dead`).',
  'keys.created': 'A key ring was created: back it up.',
  'database.ready': 'The embedded database is ready.',
  'database.moved': 'The embedded database is kept elsewhere, as its user cannot reach the data directory.',
  'database.ended': 'The embedded database ended although nobody stopped it; the process ends too.',
  'database.line': 'What the embedded database itself logged (debug).',
  'database.connection-lost': 'An idle connection to the database was lost; another one is opened.',
  library: 'A line of a library, such as the HTTP server, as it is.',
} as const satisfies Readonly<Record<string, string>>

export type LogEvent = keyof typeof LOG_EVENTS

/** Of lines that name no event: none of ours does. */
export const LIBRARY_EVENT: LogEvent = 'library'
