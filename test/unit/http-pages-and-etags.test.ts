import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { etagOf, ifMatch, revisionOf } from '../../src/http/etag.ts'
import { limitOf, paginate, sortedPage } from '../../src/http/pagination.ts'
import { refuseUnstorableText } from '../../src/http/storable-text.ts'

describe('a page', () => {
  it.each([
    ['the only one', { pageNumber: 1, pageSize: 20 }, 3, { nextPage: null, totalPages: 1 }],
    ['one of many', { pageNumber: 2, pageSize: 20 }, 41, { nextPage: 3, totalPages: 3 }],
    ['the last', { pageNumber: 3, pageSize: 20 }, 41, { nextPage: null, totalPages: 3 }],
    ['a full last one', { pageNumber: 2, pageSize: 20 }, 40, { nextPage: null, totalPages: 2 }],
    ['of nothing', { pageNumber: 1, pageSize: 20 }, 0, { nextPage: null, totalPages: 0 }],
    ['behind the end', { pageNumber: 9, pageSize: 20 }, 40, { nextPage: null, totalPages: 2 }],
  ])('%s is described', (_sentence, page, count, expected) => {
    expect(paginate(page, ['item'], count)).toEqual({
      data: ['item'],
      meta: { pagination: { ...page, count, ...expected } },
    })
  })

  it('is found by limit and offset', () => {
    expect(limitOf({ pageNumber: 3, pageSize: 20 })).toEqual({ limit: 20, offset: 40 })
  })

  it.each([
    ['nothing', {}, { pageSize: 20, pageNumber: 1, sortDirection: 'asc' }],
    [
      'everything',
      { pageSize: '100', pageNumber: '16384', sortFieldName: 'id', sortDirection: 'desc' },
      { pageSize: 100, pageNumber: 16384, sortFieldName: 'id', sortDirection: 'desc' },
    ],
  ])('is asked for with %s', (_sentence, query, parsed) => {
    expect(z.strictObject(sortedPage(['name', 'id'])).parse(query)).toEqual(parsed)
  })

  it.each<readonly [string, object]>([
    ['a size of nothing', { pageSize: '0' }],
    ['too large a size', { pageSize: '101' }],
    ['a fraction', { pageSize: '1.5' }],
    ['no number', { pageNumber: 'one' }],
    ['an empty number', { pageNumber: '' }],
    ['a page behind the last possible', { pageNumber: '16385' }],
    ['the same parameter twice', { pageNumber: ['1', '2'] }],
    ['a field that nothing is sorted by', { sortFieldName: 'colour' }],
    ['a direction that is none', { sortDirection: 'up' }],
    ['a parameter that is not known', { page: '1' }],
  ])('is refused with %s', (_sentence, query) => {
    expect(z.strictObject(sortedPage(['name', 'id'])).safeParse(query).success).toBe(false)
  })
})

describe('an ETag', () => {
  it('is the revision in quotes, or a digest of one that cannot be', () => {
    expect(etagOf('k7')).toBe('"k7"')
    expect(etagOf('with "quotes" and spaces')).toMatch(/^"[\w-]{43}"$/)
    expect(etagOf('')).toMatch(/^"[\w-]{43}"$/)
    expect(revisionOf({ one: 1 })).not.toBe(revisionOf({ one: 2 }))
  })

  it.each([
    ['there is no header', undefined],
    ['it is a star', '*'],
    ['it is the tag', '"7"'],
    ['the tag is in the list', '"6", "7"'],
    ['a tag beside it holds a comma', '"6,8","7"'],
  ])('lets a change pass when %s', (_sentence, header) => {
    expect(() => ifMatch(header, 'product', 'p1')('7')).not.toThrow()
  })

  it.each([
    ['it is another', '"6"', 'PRECONDITION_FAILED'],
    ['it is weak', 'W/"7"', 'PRECONDITION_FAILED'],
    ['it is part of another tag', '"6,7"', 'PRECONDITION_FAILED'],
    ['it has no quotes', '7', 'INVALID_INPUT'],
    ['there is more than tags', '"7" or so', 'INVALID_INPUT'],
    ['it is empty', '', 'INVALID_INPUT'],
  ])('stops a change when %s', (_sentence, header, code) => {
    const change = (): void => ifMatch(header, 'product', 'p1')('7')
    expect(change).toThrow(expect.objectContaining({ code }))
  })
})

describe('text', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 'leaf' : [nested(depth - 1)])
  const request = (body: unknown) => ({ params: {}, query: {}, body })

  it.each([
    ['any language', request({ name: 'Zürich 東京 😀', list: ['ok', 1, null, true] })],
    ['some depth', request(nested(60))],
    ['no body', request(undefined)],
  ])('with %s is taken', (_sentence, given) => {
    expect(() => refuseUnstorableText(given)).not.toThrow()
  })

  it.each([
    ['NUL', request({ list: [{ name: 'a\u0000b' }] })],
    ['half a character', request({ name: 'a\ud800b' })],
    ['a field named with NUL', request({ 'a\u0000': 1 })],
    ['NUL in the query', { params: {}, query: { where: '\u0000' }, body: undefined }],
    ['NUL in the path', { params: { id: '\u0000' }, query: {}, body: undefined }],
    ['no bottom', request(nested(5000))],
  ])('with %s is refused', (_sentence, given) => {
    expect(() => refuseUnstorableText(given)).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }))
  })
})
