import { describe, expect, it } from 'vitest'
import { withApi } from '../helpers/http.ts'
import { readApimDescription } from './apim-description.ts'

const description = readApimDescription()

interface Published {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** The names of parameters are each side's own. */
const withoutNames = (operation: string): string => operation.replace(/\{[^}]*\}/g, '{}')

describe('the APIM API', () => {
  it.skipIf(description === null)('has every operation of its description', async () => {
    await using api = await withApi()
    const { body } = await api.call<Published>('GET', '/api/v2/apim/openapi.json')
    const served = new Set(
      Object.entries(body.paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) =>
          withoutNames(`${method.toUpperCase()} ${path.replace('/api/v2/apim', '')}`),
        ),
      ),
    )
    const described = description?.operations ?? []
    expect(described.length).toBeGreaterThan(50)
    expect(described.filter((operation) => !served.has(withoutNames(operation)))).toEqual([])
  })
})
