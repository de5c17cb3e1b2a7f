import { type Asked, answerError } from './remote-errors.ts'

/** Below a base address that may have a path of its own. */
export function urlBelow(base: string, path: string, query: Readonly<Record<string, string | number>> = {}): URL {
  const url = new URL(base)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value))
  return url
}

/** The parser's own words would quote the text, which may hold secrets. */
export function parseJson(asked: Asked, text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw answerError(asked, text.trim() === '' ? 'it is empty' : 'it is no JSON')
  }
}
