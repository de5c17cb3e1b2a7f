import type { Context } from '../context.ts'
import { codeOf, errorLine } from '../domain/errors.ts'
import { renderDrift, renderStep } from '../reconcile/render.ts'
import type { Pair } from '../reconcile/store-port.ts'
import type { Output } from './output.ts'

export interface RunPairsOptions {
  readonly allowDisruptive: boolean
  readonly signal: AbortSignal
}

/** Reconciles the pairs now, one after the other, and prints what was done. True when nothing failed or waits. */
export async function runPairs(
  context: Context,
  pairs: readonly Pair[],
  options: RunPairsOptions,
  output: Output,
): Promise<boolean> {
  let good = true
  for (const pair of pairs) {
    const title = `registration ${pair.registrationId} on broker ${pair.brokerId}`
    try {
      const outcome = await context.engine.reconcilePair(pair, { trigger: 'operator', ...options })
      if (outcome.status === 'busy') {
        good = false
        output.line(`${title}: another worker has it; try again in a moment`)
        if (output.json) output.document({ ...pair, status: 'busy' })
        continue
      }
      const { executed, plan } = outcome.status === 'done' ? outcome : { executed: [], plan: null }
      const waiting = plan?.steps.filter((step) => step.decision === 'held') ?? []
      if (waiting.length > 0 || (plan?.conflicts.length ?? 0) > 0 || plan?.refused != null) good = false
      output.line(`${title}: ${executed.length === 0 ? 'nothing to write' : `${executed.length} writes`}`)
      for (const step of plan?.steps ?? []) output.line(`  ${renderStep(step)}`)
      for (const conflict of plan?.conflicts ?? []) output.line(`  ! ${renderDrift(conflict)}`)
      if (output.json) output.document({ ...pair, status: outcome.status, writes: executed.length, plan })
    } catch (error) {
      good = false
      output.line(`${title}: ${output.paint.red('failed')}: ${errorLine(error)}`)
      if (output.json) output.document({ ...pair, status: 'failed', code: codeOf(error), error: errorLine(error) })
    }
  }
  return good
}
