import type { FastifyReply } from 'fastify'
import { strToU8, zipSync } from 'fflate'
import { stringify } from 'yaml'
import { z } from 'zod'
import {
  ASYNCAPI_VERSIONS,
  type AsyncApiServer,
  type AsyncApiVersion,
  renderAsyncApi,
} from '../../domain/asyncapi-render.ts'
import type { EventApiSource } from '../../store/product-view.ts'
import { chooseOffer, type Offer } from '../accept.ts'

const API_FORMATS = ['application/json', 'application/x-yaml', 'application/zip'] as const
type ApiFormat = (typeof API_FORMATS)[number]

/** The query of every call that answers with a document. */
export const documentQuery = z.strictObject({
  apiFormat: z
    .enum(API_FORMATS)
    .optional()
    .describe('A zip holds the document as JSON. Without it the header Accept decides; JSON is the first choice.'),
  asyncApiVersion: z
    .enum(ASYNCAPI_VERSIONS)
    .optional()
    .describe('The version of the document as imported when absent.'),
})

/** YAML is answered as `text/plain`, as the API's description has it, and taken for what a client calls it. */
const OFFERS: readonly Offer<ApiFormat>[] = [
  { name: 'application/json', mediaTypes: ['application/json'] },
  {
    name: 'application/x-yaml',
    mediaTypes: ['application/x-yaml', 'application/yaml', 'text/yaml', 'text/x-yaml', 'text/plain'],
  },
  { name: 'application/zip', mediaTypes: ['application/zip'] },
]

/** The schema of the answer: the bare document, in the format that was asked for. */
export const documentAnswer = {
  200: {
    description: 'An AsyncAPI 2.x document with the servers of the product and the bindings of the plan',
    content: {
      'application/json': { schema: z.record(z.string(), z.unknown()) },
      'text/plain': { schema: z.string().describe('YAML.') },
      'application/zip': { schema: z.string().meta({ format: 'binary' }) },
    },
  },
} as const

export interface DocumentIds {
  readonly productId: string
  readonly eventApiId: string
}

/**
 * Answers with the AsyncAPI document of an Event API on a plan. Throws NOT_ACCEPTABLE when the client does not take the
 * format that it asks for, or none at all.
 */
export function sendAsyncApiDocument(
  reply: FastifyReply,
  { productId, eventApiId }: DocumentIds,
  source: EventApiSource,
  query: { readonly apiFormat?: ApiFormat | undefined; readonly asyncApiVersion?: AsyncApiVersion | undefined },
): FastifyReply {
  const offers = query.apiFormat === undefined ? OFFERS : OFFERS.filter(({ name }) => name === query.apiFormat)
  const format = chooseOffer(reply.request.headers.accept, offers)
  reply.header('vary', 'accept')
  const { productName, productVersion, applicationDomainId, viewpoint, policy } = source
  const document = renderAsyncApi(source.document, {
    viewpoint,
    policy,
    servers: serversOf(source.gateways),
    product: { id: productId, name: productName, version: productVersion, applicationDomainId },
    asyncApiVersion: query.asyncApiVersion ?? null,
  })
  switch (format) {
    case 'application/json':
      return reply.type('application/json; charset=utf-8').send(document)
    case 'application/x-yaml':
      // As the API's description has it; the parameter names the format, not the media type of the answer.
      return reply.type('text/plain; charset=utf-8').send(stringify(document, { aliasDuplicateObjects: false }))
    case 'application/zip':
      return reply
        .type('application/zip')
        .header('content-disposition', `attachment; filename="${eventApiId}.zip"`)
        .send(zipped(`${eventApiId}.json`, JSON.stringify(document, null, 2)))
    default: {
      const unreachable: never = format
      return unreachable
    }
  }
}

/** The same document is the same file, whenever it is asked for: the earliest time that the format can say. */
const zipped = (name: string, text: string): Buffer =>
  Buffer.from(zipSync({ [name]: strToU8(text) }, { mtime: new Date(1980, 0, 1) }))

const serversOf = (gateways: EventApiSource['gateways']): readonly AsyncApiServer[] =>
  gateways.flatMap(({ id, name, environmentName, eventMeshName, messagingServiceConnections }) =>
    messagingServiceConnections.map(({ url, protocol, protocolVersion, bindings }) => ({
      name: `${id}-${protocol}`,
      url,
      protocol,
      protocolVersion,
      description: `${name} in the event mesh ${eventMeshName} of the environment ${environmentName}`,
      msgVpnName: bindings.msgVpn,
    })),
  )
