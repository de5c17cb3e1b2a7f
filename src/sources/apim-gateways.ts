import { z } from 'zod'
import { type MessagingSettings, PROTOCOLS, type ProtocolEndpoint } from '../domain/catalogue.ts'
import type { RemoteBroker } from '../domain/remote-catalogue.ts'
import { catalogueId, list, text } from './apim-fields.ts'
import type { Findings } from './findings.ts'

const gateway = z.object({ id: catalogueId, name: text(1000), messagingServiceConnections: list })
const connection = z.object({ protocol: z.string().max(64), url: z.string().max(1000) })

/** A messaging service with where clients connect; null when it has to be left out. */
export function readGateway(item: unknown, findings: Findings): RemoteBroker | null {
  const parsed = gateway.safeParse(item)
  if (!parsed.success) {
    findings.warn('A gateway without a usable id was left out.')
    return null
  }
  const { id, name, messagingServiceConnections } = parsed.data
  return {
    id,
    name: name === '' ? id : name,
    messaging: readMessaging(messagingServiceConnections ?? [], id, findings),
  }
}

/** A broker has one host; what is offered on another one cannot be said. */
function readMessaging(items: readonly unknown[], id: string, findings: Findings): MessagingSettings | null {
  let host: string | null = null
  const endpoints = new Map<string, ProtocolEndpoint>()
  for (const item of items) {
    const endpoint = readEndpoint(item, id, findings)
    if (endpoint === null) continue
    host ??= endpoint.host
    if (endpoint.host !== host)
      findings.warn(`Gateway ${id} has ${endpoint.protocol} on another host; it was left out.`)
    else if (!endpoints.has(endpoint.protocol)) {
      endpoints.set(endpoint.protocol, { protocol: endpoint.protocol, port: endpoint.port })
    }
  }
  if (host === null) return null
  return { host, protocols: PROTOCOLS.flatMap((protocol) => endpoints.get(protocol) ?? []) }
}

function readEndpoint(item: unknown, id: string, findings: Findings): (ProtocolEndpoint & { host: string }) | null {
  const parsed = connection.safeParse(item)
  const protocol = PROTOCOLS.find((each) => each === parsed.data?.protocol)
  if (!parsed.success || protocol === undefined) {
    findings.warn(`Gateway ${id} has a connection over an unknown protocol; it was left out.`)
    return null
  }
  const url = URL.canParse(parsed.data.url) ? new URL(parsed.data.url) : null
  const host = url?.hostname.replace(/^\[(.*)\]$/, '$1') ?? ''
  const port = Number(url?.port || DEFAULT_PORTS[url?.protocol ?? ''])
  if (host === '' || !(port >= 1 && port <= 65_535)) {
    findings.warn(`Gateway ${id} has no usable address for ${protocol}; it was left out.`)
    return null
  }
  return { protocol, port, host }
}

/** Left out of an address by those who write it. */
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443 }
