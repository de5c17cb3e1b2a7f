import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { failureOf } from './errors.ts'

/** Of each connection, what is not answered yet. */
const pending = new WeakMap<Socket, Set<ServerResponse>>()

/** To be called for every request. */
export function expectAnswer(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request
  const responses = pending.get(socket) ?? new Set()
  pending.set(socket, responses.add(response))
  response.once('close', () => responses.delete(response))
}

/**
 * What is no HTTP: answered in the one shape, on the bare connection. What came whole before it on the same connection is
 * being done, so its own answer goes out instead, and the connection ends then.
 */
export function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const last = [...(pending.get(socket) ?? [])].filter(({ req }) => req.complete).at(-1)
  if (last !== undefined) {
    last.once('close', () => socket.destroy())
    return
  }
  const timedOut = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const status = timedOut ? '408 Request Timeout' : tooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const code = timedOut ? 'REQUEST_TIMED_OUT' : 'FST_ERR_BAD_URL'
  const { answer } = failureOf(Object.assign(new Error('not HTTP'), { code }))
  const body = JSON.stringify(answer)
  if (socket.writable) {
    socket.write(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    )
  }
  socket.destroy(error)
}
