import { describe, expect, it } from 'vitest'
import { renderChanges, renderSummary } from '../../src/cli/import-changes.ts'
import type { ImportChange } from '../../src/store/import-changes.ts'

const change = (type: ImportChange['type'], id: string, attributes: ImportChange['attributes'] = []): ImportChange => ({
  type,
  kind: 'registration',
  id,
  attributes,
})

describe('the change of an import in words', () => {
  it('has a line per object and per attribute of an update', () => {
    const changes: readonly ImportChange[] = [
      { type: 'create', kind: 'broker', id: 'broker-1', attributes: [{ name: 'name', after: 'x' }] },
      change('update', 'app-1', [
        { name: 'name', before: null, after: 'Shop' },
        { name: 'filters', before: {}, after: { region: ['e'.repeat(80)] } },
        { name: 'consumerSecret' },
      ]),
      change('delete', 'app-2'),
    ]
    expect(renderChanges(changes)).toEqual([
      '+ broker broker-1',
      '~ registration app-1',
      '    name: none -> Shop',
      `    filters: {} -> {"region":["${'e'.repeat(48)}…`,
      '    consumerSecret changed',
      '- registration app-2',
    ])
  })

  it('counts what is too much to show', () => {
    const changes = Array.from({ length: 25 }, (_, index) => change('create', `app-${index}`))
    const lines = renderChanges(changes)
    expect(lines).toHaveLength(21)
    expect(lines.at(-1)).toBe('+ … 5 more of kind registration')
  })

  it('ends with what was done', () => {
    const changes = [change('create', 'a'), change('update', 'b'), change('delete', 'c')]
    expect(renderSummary(changes, { dryRun: false, raised: 1 })).toBe(
      '1 created, 1 updated, 1 removed. 1 registration to reconcile.',
    )
    expect(renderSummary(changes, { dryRun: true, raised: 0 })).toBe(
      '1 to create, 1 to update, 1 to remove. Nothing was written.',
    )
    expect(renderSummary([], { dryRun: false, raised: 0 })).toBe('Nothing to do: the store holds what the file says.')
  })
})
