/**
 * Whose members (topic exceptions, subscriptions) a sweep reads. A listing is a request for each object, so on a large
 * broker only a share takes its turn in each sweep: the arc of the circle [0, 1) that begins at `from`.
 */
export interface ListingTurn {
  readonly from: number
  /** 1: all. */
  readonly share: number
}

export const ALL_LISTINGS: ListingTurn = { from: 0, share: 1 }

/** `place` is the object's own place on the circle. */
export function isListed({ from, share }: ListingTurn, place: number): boolean {
  if (share >= 1) return true
  return (((place - from) % 1) + 1) % 1 < share
}

/** `listings` is how many the broker would take for all of its objects, `bound` the most for one sweep. */
export function listingTurn(from: number, listings: number, bound: number): ListingTurn {
  return listings <= bound ? ALL_LISTINGS : { from, share: bound / listings }
}

/** Where the next sweep begins. */
export const nextListing = ({ from, share }: ListingTurn): number => (share >= 1 ? from : (from + share) % 1)
