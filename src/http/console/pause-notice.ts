import { counted } from './components.ts'
import type { Notice } from './notices.ts'

/** After a resume that had these runs put in the queue. */
export function resumedNotice({ count, queued }: { readonly count: number; readonly queued: boolean }): Notice {
  if (count === 0) return { tone: 'good', text: 'Resumed. Nothing was waiting.' }
  const text = `Resumed. ${counted(count, 'run')} asked for that had to wait.`
  return queued
    ? { tone: 'good', text }
    : { tone: 'warn', text: `${text} The queue did not take it in time; the poll will find it.` }
}
