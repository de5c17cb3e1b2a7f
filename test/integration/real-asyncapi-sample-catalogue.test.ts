import { describe, expect, it } from 'vitest'
import { parsePortalFile } from '../../src/portal-file/parse-portal-file.ts'

describe('the sample catalogue', () => {
  it('is a portal file without problems', async () => {
    const path = new URL('../../examples/catalogue.yaml', import.meta.url).pathname
    const portal = await parsePortalFile(path, { env: () => 'demo' })
    const counts = [portal.brokers, portal.eventApis, portal.products, portal.registrations].map(({ length }) => length)
    expect(counts).toEqual([3, 6, 5, 8])
    expect(portal.warnings.map(({ message }) => message)).toEqual([expect.stringContaining('apache.avro')])
  })
})
