import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ManagementSettings } from '../../src/domain/catalogue.ts'

export interface DoubleRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** 1 for the first request. */
  readonly number: number
}

export interface SempDouble extends AsyncDisposable {
  readonly url: string
  readonly requests: DoubleRequest[]
  readonly settings: (changes?: Partial<ManagementSettings>) => ManagementSettings
}

export type Answer = (request: DoubleRequest, response: ServerResponse) => void

/** A bare HTTP server that answers each request as one test says; no knowledge of SEMP. */
export async function startDouble(answer: Answer, tls?: { key: string; cert: string }): Promise<SempDouble> {
  const requests: DoubleRequest[] = []
  const listener = async (incoming: import('node:http').IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const request = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString('utf8'),
      number: requests.length + 1,
    }
    requests.push(request)
    answer(request, response)
  }
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `${tls === undefined ? 'http' : 'https'}://localhost:${port}`
  return {
    url,
    requests,
    settings: (changes) => ({
      url,
      msgVpnName: 'test-vpn',
      username: 'semp-admin',
      maxConcurrentRequests: 4,
      requestTimeoutMs: 5_000,
      ...changes,
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

export function sendData(response: ServerResponse, data: unknown, paging?: object): void {
  const meta = { request: { method: 'GET', uri: '' }, responseCode: 200, ...(paging && { paging }) }
  sendJson(response, 200, { data, links: {}, meta })
}

export function sendRefusal(response: ServerResponse, code: number, status: string, text = '', http = 400): void {
  const error = { code, status, description: text }
  sendJson(response, http, { meta: { error, request: { method: 'GET', uri: '' }, responseCode: http } })
}
