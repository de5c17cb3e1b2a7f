import { KeymeshError } from '../domain/errors.ts'

interface MediaRange {
  readonly type: string
  readonly subtype: string
  /** 0 to 1; 0: not acceptable. */
  readonly quality: number
}

/** More than any client sends; the rest of a header that goes on is not looked at. */
const MAX_RANGES = 100

/** The media ranges of an `Accept` header (RFC 9110 12.5.1), parameters other than `q` left out. */
function mediaRanges(header: string): readonly MediaRange[] {
  return header
    .split(',', MAX_RANGES)
    .map((text): MediaRange => {
      const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
      const [type = '', subtype = ''] = range.split('/')
      const given = parameters.find((parameter) => /^q\s*=/.test(parameter))
      const quality = given === undefined ? 1 : Number(given.slice(given.indexOf('=') + 1))
      return { type, subtype, quality: quality >= 0 && quality <= 1 ? quality : 0 }
    })
    .filter(({ type, subtype }) => type !== '' && subtype !== '')
}

/** How welcome a media type is, by the most specific range that names it. */
function qualityOf(ranges: readonly MediaRange[], mediaType: string): number {
  const [type = '', subtype = ''] = mediaType.split('/')
  const found =
    ranges.find((range) => range.type === type && range.subtype === subtype) ??
    ranges.find((range) => range.type === type && range.subtype === '*') ??
    ranges.find((range) => range.type === '*' && range.subtype === '*')
  return found?.quality ?? 0
}

/** One way to answer, and the media types of an `Accept` header that it satisfies. */
export interface Offer<Name extends string> {
  readonly name: Name
  readonly mediaTypes: readonly string[]
}

/**
 * The offer that is most welcome, the first of equals; without a header, or with one that says nothing, the first.
 * Throws NOT_ACCEPTABLE when none is.
 */
export function chooseOffer<Name extends string>(accept: string | undefined, offers: readonly Offer<Name>[]): Name {
  const ranges = accept === undefined ? [] : mediaRanges(accept)
  const [first] = offers
  if (first === undefined) throw new TypeError('there is nothing to offer')
  if (ranges.length === 0) return first.name
  let best: { readonly name: Name; readonly quality: number } | null = null
  for (const { name, mediaTypes } of offers) {
    const quality = Math.max(...mediaTypes.map((mediaType) => qualityOf(ranges, mediaType)))
    if (quality > (best?.quality ?? 0)) best = { name, quality }
  }
  if (best === null) throw notAcceptable(offers)
  return best.name
}

const notAcceptable = (offers: readonly Offer<string>[]): KeymeshError =>
  new KeymeshError({
    code: 'NOT_ACCEPTABLE',
    fate: 'stop',
    message: 'The header Accept takes nothing that this call can answer with.',
    hint: `It can answer with ${offers.map(({ mediaTypes }) => mediaTypes[0]).join(', ')}.`,
  })
