import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case; the last of repeated ones. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface RawOptions {
  /** Says that nothing more will come, so that a server does not wait for what was promised. */
  readonly halfClose?: boolean
  readonly withinMs?: number
}

const WITHIN_MS = 20_000
const CRLF = '\r\n'

/**
 * Sends bytes to a port of this machine as they are, and reads the first answer, or until the server closes the
 * connection. Null: it closed without an answer.
 */
export async function rawExchange(port: number, bytes: Buffer, options: RawOptions = {}): Promise<RawAnswer | null> {
  const { halfClose = false, withinMs = WITHIN_MS } = options
  const chunks: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the server neither answered nor closed the connection within ${withinMs / 1000} seconds`))
    }, withinMs)
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (parsedAnswer(Buffer.concat(chunks))?.isWhole === true) socket.destroy()
    })
    socket.on('end', () => socket.destroy())
    // A server may answer before it has read everything, and reset the connection then.
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.write(bytes)
    if (halfClose) socket.end()
  })
  return parsedAnswer(Buffer.concat(chunks))?.answer ?? null
}

interface Parsed {
  readonly answer: RawAnswer
  /** Whether nothing more can belong to it. The length of an answer to HEAD is not that of what comes. */
  readonly isWhole: boolean
}

function parsedAnswer(bytes: Buffer): Parsed | null {
  const text = bytes.toString('latin1')
  const end = text.indexOf(CRLF + CRLF)
  if (end < 0) return null
  const [first = '', ...lines] = text.slice(0, end).split(CRLF)
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1])
  const rest = bytes.subarray(end + 4)
  if (status >= 100 && status < 200) return parsedAnswer(rest)
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  if (status === 204 || status === 304) return { answer: { status, headers, body: '' }, isWhole: true }
  const length = headers['content-length']
  if (length !== undefined) {
    const body = rest.subarray(0, Number(length)).toString()
    return { answer: { status, headers, body }, isWhole: rest.length >= Number(length) }
  }
  const chunked = headers['transfer-encoding'] === 'chunked'
  const body = chunked ? ofChunks(rest) : rest.toString()
  return { answer: { status, headers, body }, isWhole: chunked && rest.toString('latin1').endsWith('0\r\n\r\n') }
}

function ofChunks(rest: Buffer): string {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf(CRLF, at)
    const size = lineEnd < 0 ? 0 : Number.parseInt(rest.subarray(at, lineEnd).toString(), 16)
    if (!(size > 0)) return Buffer.concat(parts).toString()
    parts.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
