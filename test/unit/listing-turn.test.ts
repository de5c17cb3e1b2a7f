import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ALL_LISTINGS, isListed, listingTurn, nextListing } from '../../src/reconcile/listing-turn.ts'

const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('whose members a sweep reads', () => {
  it('is everybody while the bound allows it', () => {
    expect(listingTurn(0.3, 100, 100)).toBe(ALL_LISTINGS)
    fc.assert(fc.property(place, (at) => isListed(ALL_LISTINGS, at)))
  })

  it('is a share of the size of the bound, wherever it begins', () => {
    fc.assert(
      fc.property(place, fc.integer({ min: 1, max: 999 }), (from, bound) => {
        const turn = listingTurn(from, 1000, bound)
        const places = Array.from({ length: 1000 }, (_, index) => (index + 0.5) / 1000)
        const listed = places.filter((at) => isListed(turn, at)).length
        expect(Math.abs(listed - bound)).toBeLessThanOrEqual(1)
      }),
    )
  })

  it('is everybody once in as many sweeps as the bound makes necessary', () => {
    fc.assert(
      fc.property(place, place, fc.integer({ min: 50, max: 999 }), (at, start, bound) => {
        let from = start
        let listed = 0
        // One more than exact, as the arcs meet with rounding.
        for (let sweep = 0; sweep <= Math.ceil(1000 / bound); sweep += 1) {
          const turn = listingTurn(from, 1000, bound)
          if (isListed(turn, at)) listed += 1
          from = nextListing(turn)
        }
        expect(listed).toBeGreaterThanOrEqual(1)
      }),
    )
  })
})
