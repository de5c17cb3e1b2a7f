import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NotificationPayload, notificationPayload } from '../../src/store/notification-payload.ts'

export interface ReceivedPost {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly payload: NotificationPayload
}

/** What a receiver answers next: a status, or something of its own. */
export type ReceiverAnswer = number | ((response: ServerResponse) => void)

export interface NotificationReceiver extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly posts: ReceivedPost[]
  /** Answers of the next posts; 204 after them. */
  readonly answers: ReceiverAnswer[]
}

/** A real HTTP server that keeps what it is sent. Every body is checked against the schema of the payload. */
export async function startReceiver(): Promise<NotificationReceiver> {
  const posts: ReceivedPost[] = []
  const answers: ReceiverAnswer[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      const payload = notificationPayload.parse(JSON.parse(body))
      posts.push({ path: request.url ?? '', headers: request.headers, body, payload })
      const answer = answers.shift() ?? 204
      if (typeof answer === 'number') response.writeHead(answer).end()
      else answer(response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    posts,
    answers,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** As a receiver checks it, written anew from the description of Standard Webhooks. */
export function isSignedBy(secret: string, { headers, body }: Pick<ReceivedPost, 'headers' | 'body'>): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`
  const expected = createHmac('sha256', key).update(content, 'utf8').digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .map((part) => part.split(',', 2))
    .filter(([version]) => version === 'v1')
    .some(([, signature = '']) => {
      const given = Buffer.from(signature, 'base64')
      return given.length === expected.length && timingSafeEqual(given, expected)
    })
}
