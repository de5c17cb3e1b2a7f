import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FaultProxy, type ProxyFault, startFaultProxy } from '../helpers/fault-proxy.ts'
import { until } from '../helpers/service.ts'

const PAYLOAD = 'x'.repeat(1_000)
const server = createServer((socket) => {
  socket.on('error', () => undefined)
  socket.pipe(socket)
})
let proxy: FaultProxy
beforeEach(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy = await startFaultProxy((server.address() as AddressInfo).port)
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  const closed = once(server, 'close')
  server.close()
  await closed
})

interface Seen {
  readonly socket: Socket
  received: string
  end: string | null
}

/** Connects, sends the payload, and notes what comes of it. */
function visit(): Seen {
  const socket = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true })
  const seen: Seen = { socket, received: '', end: null }
  socket.on('data', (chunk) => {
    seen.received += String(chunk)
  })
  socket.on('end', () => {
    seen.end ??= 'goodbye'
  })
  socket.on('error', (error) => {
    seen.end ??= 'code' in error ? String(error.code) : error.message
  })
  socket.write(PAYLOAD)
  return seen
}

const passing = async (seen: Seen): Promise<true> =>
  until('all is echoed', () => (seen.received === PAYLOAD ? true : null))
const ending = async (seen: Seen): Promise<string> => until('it ends', () => seen.end)

describe('the proxy of faults', () => {
  const ends: readonly { readonly fault: ProxyFault; readonly end: RegExp; readonly received: number }[] = [
    { fault: { kind: 'refuse' }, end: /ECONNREFUSED/, received: 0 },
    { fault: { kind: 'reset' }, end: /ECONNRESET/, received: 0 },
    { fault: { kind: 'cut', direction: 'down', afterBytes: 300 }, end: /ECONNRESET|goodbye/, received: 300 },
    { fault: { kind: 'cut', direction: 'up', afterBytes: 0 }, end: /ECONNRESET|goodbye/, received: 0 },
    { fault: { kind: 'half-close', direction: 'down' }, end: /goodbye/, received: 0 },
  ]
  it.each(ends)('makes $fault.kind for who comes, and ends it when told', async ({ fault, end, received }) => {
    await proxy.set(fault)
    const seen = visit()
    expect(await ending(seen)).toMatch(end)
    expect(seen.received.length).toBe(received)
    seen.socket.destroy()
    await proxy.set({ kind: 'none' })
    const next = visit()
    await passing(next)
    next.socket.destroy()
  })

  it.each([{ kind: 'refuse' }, { kind: 'reset' }] as const)('makes $kind for who is there', async (fault) => {
    const seen = visit()
    await passing(seen)
    await proxy.set(fault)
    expect(await ending(seen)).toBe('ECONNRESET')
    expect(proxy.accepted).toBe(1)
  })

  it('holds back what is silent, and passes it on afterwards', async () => {
    await proxy.set({ kind: 'silent' })
    const seen = visit()
    await until('it is there', () => (proxy.open === 1 ? true : null))
    expect(seen.received).toBe('')
    await proxy.set({ kind: 'none' })
    await passing(seen)
    seen.socket.destroy()
  })

  it.each([
    { kind: 'slow', bytesPerSecond: 2_000 },
    { kind: 'late', delayMs: 250 },
  ] as const)('makes $kind', async (fault) => {
    await proxy.set({ ...fault, direction: 'down' })
    const startedMs = performance.now()
    const seen = visit()
    await passing(seen)
    expect(performance.now() - startedMs).toBeGreaterThan(200)
    seen.socket.end()
    expect(await ending(seen)).toBe('goodbye')
    seen.socket.destroy()
  })

  it('answers HTTP requests by itself when they are whole', async () => {
    await proxy.set({ kind: 'answer', with: 'HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' })
    const response = await fetch(`http://127.0.0.1:${proxy.port}/`, { method: 'POST', body: PAYLOAD })
    expect(response.status).toBe(418)
  })

  it('leaves nothing open at its end', async () => {
    const seen = visit()
    await passing(seen)
    await proxy[Symbol.asyncDispose]()
    expect(await ending(seen)).toBe('ECONNRESET')
    await until('nothing is open', () => (proxy.open === 0 ? true : null))
  })
})
