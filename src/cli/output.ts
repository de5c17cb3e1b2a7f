import Table from 'cli-table3'
import pc from 'picocolors'

/** Where a command prints. Text for people on a terminal or in a pipe; JSON for machines; never both. */
export interface Output {
  readonly json: boolean
  /** Whether standard output is a terminal: decides on colour and progress. */
  readonly terminal: boolean
  readonly paint: ReturnType<typeof pc.createColors>
  /** A line of text; nothing when the command prints JSON. */
  line(text?: string): void
  /** One JSON document on one line. */
  document(value: unknown): void
  /** Replaces the line before it on a terminal; silent elsewhere. */
  progress(text: string): void
}

export interface Streams {
  readonly out: { write(text: string): unknown; readonly isTTY?: boolean }
  readonly err: { write(text: string): unknown; readonly isTTY?: boolean }
}

export function createOutput(streams: Streams, options: { readonly json: boolean }): Output {
  const terminal = streams.out.isTTY === true
  let progressShown = false
  const clearProgress = (): void => {
    if (progressShown) streams.err.write('\r\u001b[K')
    progressShown = false
  }
  return {
    json: options.json,
    terminal,
    paint: pc.createColors(terminal && !options.json),
    line: (text = '') => {
      clearProgress()
      if (!options.json) streams.out.write(`${text}\n`)
    },
    document: (value) => {
      clearProgress()
      streams.out.write(`${JSON.stringify(value)}\n`)
    },
    progress: (text) => {
      if (streams.err.isTTY !== true || options.json) return
      clearProgress()
      streams.err.write(text)
      progressShown = true
    },
  }
}

const PLAIN_BORDERS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
}

export function table(head: readonly string[], rows: readonly (readonly string[])[], paint: Output['paint']): string {
  const grid = new Table({
    head: head.map((text) => paint.bold(text)),
    chars: PLAIN_BORDERS,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  })
  grid.push(...rows.map((row) => [...row]))
  return grid
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .join('\n')
}
