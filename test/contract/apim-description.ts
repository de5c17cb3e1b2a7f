import { existsSync, readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import { APIM_DIFFERENCES, APIM_UNDESCRIBED_STATUSES, type DescribedSchema } from './apim-differences.ts'

const FILE = new URL('../../../shared/spec/apim-openapi.json', import.meta.url)

export interface DescribedAnswer {
  readonly method: string
  /** From the root, with or without a query: `/api/v2/apim/gateways?pageSize=1`. */
  readonly path: string
  readonly status: number
  readonly contentType: string
  readonly body: unknown
}

export interface ApimDescription {
  /** `GET /gateways/{messagingServiceId}` */
  readonly operations: readonly string[]
  /** As `operations` has it; null for what is not described. */
  operationOf(method: string, path: string): string | null
  /** What of a request's body is not as described; empty when all is. */
  bodyProblems(method: string, path: string, body: unknown): readonly string[]
  /** What of an answer is not as described; empty when all is. */
  problemsOf(answer: DescribedAnswer): readonly string[]
}

interface Response {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
}
interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> }
  readonly responses: Readonly<Record<string, Response>>
}
interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, DescribedSchema>>
    readonly responses: Readonly<Record<string, Response>>
  }
}

const PREFIX = '/api/v2/apim'
const METHODS = ['get', 'put', 'post', 'patch', 'delete']

/** The public description of the APIM API with the demanded differences; null where it is absent. */
export function readApimDescription(): ApimDescription | null {
  if (!existsSync(FILE)) return null
  const openApi = JSON.parse(readFileSync(FILE, 'utf8')) as OpenApi
  for (const { schema, apply } of APIM_DIFFERENCES) {
    const described = openApi.components.schemas[schema]
    if (described === undefined) throw new Error(`the description has no schema ${schema}`)
    apply(described)
  }
  const ajv = new Ajv({ strict: false, allErrors: true })
  ajvFormats.default(ajv)
  ajv.addSchema({ $id: 'apim', components: openApi.components })
  return {
    operations: Object.entries(openApi.paths).flatMap(([path, operations]) =>
      METHODS.filter((method) => method in operations).map((method) => `${method.toUpperCase()} ${path}`),
    ),
    operationOf: (method, path) => {
      const found = find(openApi, method, path)
      return found === null ? null : `${method} ${found.template}`
    },
    bodyProblems: (method, path, body) => bodyProblems(openApi, compilerOf(ajv), { method, path, body }),
    problemsOf: (answer) => problemsOf(openApi, compilerOf(ajv), answer),
  }
}

/** For `describe.skipIf`: the reason is printed once. */
export function apimDescriptionOrSkip(): ApimDescription | null {
  const description = readApimDescription()
  if (description === null) process.stderr.write('skipped: there is no ../shared/spec/apim-openapi.json\n')
  return description
}

type Compile = (schema: object) => ValidateFunction

function compilerOf(ajv: Ajv): Compile {
  return (schema) => ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"apim#/')) as object)
}

function find(openApi: OpenApi, method: string, path: string) {
  const below = (path.split('?')[0] ?? '').slice(PREFIX.length)
  const template = Object.keys(openApi.paths).find((each) => matches(each, below))
  const operation = template === undefined ? undefined : openApi.paths[template]?.[method.toLowerCase()]
  return template === undefined || operation === undefined ? null : { template, operation }
}

interface DescribedBody {
  readonly method: string
  readonly path: string
  readonly body: unknown
}

function bodyProblems(openApi: OpenApi, compile: Compile, { method, path, body }: DescribedBody): readonly string[] {
  const schema = find(openApi, method, path)?.operation.requestBody?.content['application/json']?.schema
  if (schema === undefined) return body === undefined ? [] : [`${method} ${path} takes no body`]
  return validationProblems(compile(schema), body, `${method} ${path}`)
}

function problemsOf(openApi: OpenApi, compile: Compile, answer: DescribedAnswer): readonly string[] {
  const { method, status, contentType, body } = answer
  const found = find(openApi, method, answer.path)
  if (found === null) return [`${method} ${answer.path} is not described`]
  const { template, operation } = found
  const where = `${method} ${template} → ${status}`
  const known = APIM_UNDESCRIBED_STATUSES.some(
    (each) => each.method === method && each.status === status && template.endsWith(each.pathEnd),
  )
  const written = operation.responses[String(known ? 400 : status)]
  if (written === undefined) return [`${where} is not described`]
  const response =
    written.$ref === undefined ? written : openApi.components.responses[written.$ref.split('/').at(-1) ?? '']
  const mediaType = contentType.split(';')[0] ?? ''
  if (response?.content === undefined) return body === null ? [] : [`${where} must have no body`]
  const content = response.content[mediaType]
  if (content === undefined) return [`${where} is not described as ${mediaType}`]
  // Bytes have no schema in JSON.
  if (mediaType === 'application/zip') return []
  return validationProblems(compile(content.schema), body, where)
}

function validationProblems(validate: ValidateFunction, value: unknown, where: string): readonly string[] {
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${where}: ${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.split('/'), path.split('/')]
  return wanted.length === given.length && wanted.every((part, index) => part.startsWith('{') || part === given[index])
}
