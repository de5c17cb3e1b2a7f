import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type TestApi, withApi } from '../helpers/http.ts'
import { catalogue, importFile } from '../integration/http-registrations-fixture.ts'
import { apimDescriptionOrSkip } from './apim-description.ts'
import {
  gateways,
  ofRegistration,
  ofRequest,
  productAttributes,
  products,
  refusalsOf,
  registrations,
  removals,
  type Step,
} from './apim-scenario-steps.ts'

const description = apimDescriptionOrSkip()
const PREFIX = '/api/v2/apim'
let api: TestApi
let powerless: string
/** Operation, then how many answers of 2xx and of 4xx were as described. */
const validated = new Map<string, { good: number; bad: number }>()

beforeAll(async () => {
  api = await withApi()
  await importFile(api, api.accountId, catalogue())
  const { id } = await api.addUser({ name: 'nobody' })
  powerless = await api.apiToken(id, api.accountId, ['services:post'])
})
afterAll(() => api[Symbol.asyncDispose]())

async function take({ method, path, status, body, headers, token, wrong: fields }: Step): Promise<readonly string[]> {
  if (description === null) throw new Error('there is no description')
  const url = `${PREFIX}${path}`
  const answer = await api.call(method, url, {
    ...(body === undefined ? {} : { body }),
    headers: { ...(typeof body === 'string' && { 'content-type': 'application/json' }), ...headers },
    ...(token === undefined ? {} : { token: token === null ? null : powerless }),
  })
  const operation = description.operationOf(method, url)
  const isGood = status < 300
  const problems = [
    ...(answer.status === status ? [] : [`answered ${answer.status}: ${JSON.stringify(answer.body)}`]),
    ...(isGood ? description.bodyProblems(method, url, body) : []),
    ...description.problemsOf({
      method,
      path: url,
      status: answer.status,
      contentType: typeOf(answer),
      body: answer.body,
    }),
    ...(status === 400 ? detailProblems(answer, fields ?? []) : []),
  ]
  if (operation !== null && problems.length === 0) {
    const counts = validated.get(operation) ?? { good: 0, bad: 0 }
    validated.set(operation, isGood ? { ...counts, good: counts.good + 1 } : { ...counts, bad: counts.bad + 1 })
  }
  return problems.map((problem) => `${method} ${path} → ${status}: ${problem}`)
}

const typeOf = ({ headers }: Answer): string => String(headers['content-type'] ?? '')

/** A body that is no JSON has no fields to name. */
function detailProblems({ body }: Answer, fields: readonly string[]): readonly string[] {
  const details = (body as { readonly validationDetails?: object } | null)?.validationDetails ?? {}
  return fields
    .filter((field) => !(field in details))
    .map((field) => `${field} is not among ${JSON.stringify(details)}`)
}

async function walk(steps: readonly Step[]): Promise<void> {
  const problems: string[] = []
  for (const each of steps) problems.push(...(await take(each)))
  expect(problems).toEqual([])
}

describe.skipIf(description === null)(
  'a portal that does everything that the APIM API describes, right and wrong',
  () => {
    it.each<readonly [sentence: string, steps: readonly Step[]]>([
      ['reads products, their versions, plans and documents', products],
      ['keeps attributes with products', productAttributes],
      ['manages registrations', registrations],
      ['manages what hangs on a registration', ofRegistration],
      ['asks for access and narrows it', ofRequest],
      ['looks at gateways', gateways],
      ['is refused what no operation knows', description?.operations.flatMap(refusalsOf) ?? []],
      ['takes away what it made', removals],
    ])('%s', (_sentence, steps) => walk(steps))

    it('got from every operation an answer of success and one of refusal, each as described', () => {
      const lacking = description?.operations.filter((operation) => {
        const { good, bad } = validated.get(operation) ?? { good: 0, bad: 0 }
        return good === 0 || bad === 0
      })
      expect(lacking).toEqual([])
    })
  },
)
