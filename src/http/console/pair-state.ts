import { html } from 'hono/html'
import type { PairView } from '../../store/pairs-view.ts'
import { chip, type Tone } from './components.ts'
import type { Html } from './page.ts'

const STATES: Readonly<Record<PairView['state'], readonly [tone: Tone, words: string]>> = {
  'in-sync': ['good', 'in sync'],
  lagging: ['busy', 'lagging'],
  held: ['warn', 'held'],
  conflict: ['bad', 'conflict'],
  refused: ['bad', 'refused'],
  error: ['bad', 'error'],
}

type Pair = Pick<PairView, 'state' | 'generation' | 'reachedGeneration' | 'openDrift' | 'wanted' | 'paused'>

/** How a registration stands on a broker. */
export function pairState({ state, generation, reachedGeneration, openDrift, wanted, paused }: Pair): Html {
  const lags = state === 'in-sync' && reachedGeneration < generation
  const [tone, words] = lags ? STATES.lagging : state === 'in-sync' && openDrift > 0 ? DRIFTED : STATES[state]
  const shown = !wanted && state === 'in-sync' && !lags ? 'withdrawn' : words
  return html`${chip(shown === 'withdrawn' ? 'idle' : tone, shown)}${paused ? html` ${chip('idle', 'paused')}` : ''}`
}

const DRIFTED = ['warn', 'drifted'] as const
