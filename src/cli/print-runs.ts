import type { RunEvent } from '../operations/operations.ts'
import { renderDrift, renderStep } from '../reconcile/render.ts'
import type { SweepResult } from '../reconcile/sweep.ts'
import type { Output } from './output.ts'

type PairEvent = Extract<RunEvent, { readonly type: 'registration' }>

/** Prints what runs come to, as they do. `good` when nothing failed, is busy or waits; `runs` counts them. */
export async function printRuns(
  events: AsyncIterable<RunEvent>,
  output: Output,
): Promise<{ readonly good: boolean; readonly runs: number }> {
  let good = true
  let runs = 0
  for await (const event of events) {
    if (event.type === 'progress') {
      const { phase, done } = event.progress
      output.progress(`${event.brokerId}: ${phase}, ${done}`)
      continue
    }
    runs += 1
    good = printEvent(event, output) && good
    output.progress(`${runs} done`)
  }
  output.endProgress()
  return { good, runs }
}

function printEvent(event: Exclude<RunEvent, { readonly type: 'progress' }>, output: Output): boolean {
  switch (event.type) {
    case 'broker':
      return printSweep(event.brokerId, event.result, output)
    case 'broker-failed': {
      const { brokerId, code, error } = event
      output.line(`${brokerId}: ${output.paint.red('failed')}: ${error}`)
      if (output.json) output.document({ brokerId, code, error })
      return false
    }
    case 'registration':
      return printPair(event, output)
    case 'registration-failed': {
      const { pair, code, error } = event
      output.line(`${titleOf(pair)}: ${output.paint.red('failed')}: ${error}`)
      if (output.json) output.document({ ...pair, status: 'failed', code, error })
      return false
    }
    default:
      return event satisfies never
  }
}

function printSweep(brokerId: string, result: SweepResult, output: Output): boolean {
  const { compared, objectsRead, inSync, changed, waiting, busy, failed } = result
  output.line(
    `${brokerId}: ${objectsRead} objects read, ${compared} registrations compared; looked at closely: ` +
      `${changed} changed, ${inSync} already right, ${waiting} waiting for a person, ${busy} busy, ${failed} failed`,
  )
  if (output.json) output.document({ brokerId, ...result })
  return waiting + busy + failed === 0
}

function printPair({ pair, outcome }: PairEvent, output: Output): boolean {
  const title = titleOf(pair)
  if (outcome.status === 'busy') {
    output.line(`${title}: another worker has it; try again in a moment`)
    if (output.json) output.document({ ...pair, status: 'busy' })
    return false
  }
  const { writes, plan, status } = outcome
  output.line(`${title}: ${writes === 0 ? 'nothing to write' : `${writes} writes`}`)
  for (const step of plan?.steps ?? []) output.line(`  ${renderStep(step)}`)
  for (const conflict of plan?.conflicts ?? []) output.line(`  ! ${renderDrift(conflict)}`)
  if (output.json) output.document({ ...pair, status, writes, plan })
  const waits = plan?.steps.some((step) => step.decision === 'held') ?? false
  return !waits && (plan?.conflicts.length ?? 0) === 0 && plan?.refused == null
}

const titleOf = ({ registrationId, brokerId }: PairEvent['pair']): string =>
  `registration ${registrationId} on broker ${brokerId}`
