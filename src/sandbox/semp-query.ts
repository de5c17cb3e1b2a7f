import { SempFailure } from './semp-errors.ts'

export interface SempQuery {
  readonly count: number | null
  readonly cursor: string | null
  readonly where: readonly string[]
  /** As it came, for a cache of compiled selections. */
  readonly select: string | null
}

export const NO_QUERY: SempQuery = { count: null, cursor: null, where: [], select: null }

const LIST_PARAMETERS = new Set(['count', 'cursor', 'where', 'select', 'forceFullPage', 'opaquePassword'])
const OBJECT_PARAMETERS = new Set(['select', 'opaquePassword'])

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new SempFailure('INVALID_PARAMETER', 'A query parameter is not percent-encoded as it should be.')
  }
}

/** `raw` is the text behind the question mark. A comma splits `where` unless it is percent-encoded. */
export function readQuery(raw: string, shape: 'list' | 'object'): SempQuery {
  if (raw === '') return NO_QUERY
  const allowed = shape === 'list' ? LIST_PARAMETERS : OBJECT_PARAMETERS
  let query = NO_QUERY
  for (const part of raw.split('&')) {
    const equals = part.indexOf('=')
    const name = equals < 0 ? part : part.slice(0, equals)
    const rawValue = equals < 0 ? '' : part.slice(equals + 1)
    if (!allowed.has(name)) {
      throw new SempFailure('INVALID_PARAMETER', `The query parameter "${decode(name)}" is not known here.`)
    }
    query = { ...query, ...readParameter(name, rawValue) }
  }
  return query
}

function readParameter(name: string, rawValue: string): Partial<SempQuery> {
  switch (name) {
    case 'count': {
      const count = Number(rawValue)
      if (!/^\d+$/.test(rawValue) || count < 1) {
        throw new SempFailure('INVALID_PARAMETER', 'The count query parameter must be a whole number from 1 up.')
      }
      return { count }
    }
    case 'cursor':
      return { cursor: decode(rawValue) }
    case 'where':
      return { where: rawValue.split(',').map(decode) }
    case 'select':
      return { select: decode(rawValue) }
    case 'opaquePassword':
      throw new SempFailure('NOT_SUPPORTED', 'The opaquePassword query parameter is not supported by the sandbox.')
    default:
      return {}
  }
}
