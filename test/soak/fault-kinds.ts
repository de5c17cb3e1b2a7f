/** What may be wrong with a broker, or with the way to it. */
export const FAULT_KINDS = [
  'stopped',
  'unavailable',
  'often-unavailable',
  'no-sessions',
  'refuse',
  'reset',
  'silent',
  'slow',
  'late',
  'cut',
  'answers-lost',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

/** Whatever the fault: what is sent while it begins or ends is broken off, or tried again until its time is over. */
const ALWAYS = [
  'BROKER_TIMEOUT',
  'BROKER_CONNECTION_LOST',
  'BROKER_CONNECTION_FAILED',
  'BROKER_UNREACHABLE',
  'BROKER_RESTING',
] as const

const MORE: Readonly<Partial<Record<FaultKind, readonly string[]>>> = {
  unavailable: ['BROKER_UNAVAILABLE'],
  'often-unavailable': ['BROKER_UNAVAILABLE'],
  'no-sessions': ['SEMP_SESSIONS_EXHAUSTED'],
  cut: ['BROKER_ANSWER_UNEXPECTED'],
}

/** The codes that a failed job may have for it. */
export const codesOfFault = (fault: FaultKind): readonly string[] => [...ALWAYS, ...(MORE[fault] ?? [])]
