import { WriteStream } from 'node:tty'
import Table from 'cli-table3'
import ora, { type Ora } from 'ora'
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
  /** What long work is at: one line that moves, on standard error, when that is a terminal; silent elsewhere. */
  progress(text: string): void
  /** Takes the line of the progress away. */
  endProgress(): void
}

export interface Streams {
  readonly out: Stream
  readonly err: Stream
  /** As the environment asks by NO_COLOR; without it there is colour on a terminal. */
  readonly noColour?: boolean
}

interface Stream {
  write(text: string): unknown
  readonly isTTY?: boolean
}

export function createOutput(streams: Streams, options: { readonly json: boolean }): Output {
  const { out, err, noColour = false } = streams
  const terminal = out.isTTY === true
  const progress = options.json ? silence : progressOn(err, { colour: !noColour })
  return {
    json: options.json,
    terminal,
    paint: pc.createColors(terminal && !options.json && !noColour),
    line: (text = '') => {
      if (!options.json) out.write(`${text}\n`)
    },
    document: (value) => {
      out.write(`${JSON.stringify(value)}\n`)
    },
    progress: progress.show,
    endProgress: progress.end,
  }
}

interface Progress {
  show(text: string): void
  end(): void
}

const silence: Progress = { show: () => undefined, end: () => undefined }

/** The library keeps what is printed meanwhile apart from the line that moves. */
function progressOn(stream: Stream, { colour }: { readonly colour: boolean }): Progress {
  // A terminal that has no width, as one of a script may not, has no place for a line that moves.
  if (stream.isTTY !== true || !(stream instanceof WriteStream) || !(stream.columns > 0)) return silence
  let spinner: Ora | null = null
  return {
    show: (text) => {
      // A terminal that does not move its cursor, or a build server's, is left alone by the library.
      spinner ??= ora({ stream, discardStdin: false, color: colour ? 'cyan' : false, text }).start()
      spinner.text = text
    },
    end: () => {
      spinner?.stop()
      spinner = null
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
