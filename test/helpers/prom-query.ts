/** What a query of Prometheus names: enough of its grammar to look names up, not to run it. */
export interface NamedMetric {
  readonly name: string
  /** Matchers of its selector: label to the texts that are compared with. */
  readonly matchers: readonly { readonly label: string; readonly value: string }[]
}

export interface Grouping {
  /** Labels of `by`, `without`, `on` or `ignoring`, and of `group_left` or `group_right`. */
  readonly labels: readonly string[]
  /** Metrics that have to have them: those that are aggregated, else all of the query. */
  readonly of: readonly string[]
}

const WORDS =
  /^(?:and|or|unless|by|on|without|ignoring|group_left|group_right|offset|bool|sum|max|min|avg|count|topk|rate|increase|histogram_quantile|time|absent|label_values|NaN|Inf)$/
const SELECTOR = /([a-z_:][a-z0-9_:]*)\s*(\{[^}]*\})?/gi
const MATCHER = /([a-z_][a-z0-9_]*)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/gi
const GROUPING = /\b(by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g

/** An unknown word, such as a misspelt function, comes out as a metric. */
export function namesOf(query: string): { metrics: readonly NamedMetric[]; groupings: readonly Grouping[] } {
  const groupings = [...query.matchAll(GROUPING)].map((found) => {
    const [text, word = '', labels = ''] = found
    const after = found.index + text.length
    const isAggregation = word === 'by' || word === 'without'
    const inner = isAggregation ? balanced(query, query.indexOf('(', after)) : query
    return {
      labels: labels.split(',').flatMap((label) => label.trim() || []),
      of: metricsOf(inner).map(({ name }) => name),
    }
  })
  return { metrics: metricsOf(query), groupings }
}

function metricsOf(query: string): readonly NamedMetric[] {
  // Durations, numbers and the labels of groupings are not names of metrics.
  const bare = query.replace(GROUPING, ' ').replace(/\[[^\]]*\]/g, ' ')
  return [...bare.matchAll(SELECTOR)].flatMap(([, name = '', selector = '']) => {
    if (WORDS.test(name)) return []
    const matchers = [...selector.matchAll(MATCHER)].map(([, label = '', value = '']) => ({ label, value }))
    return [{ name, matchers }]
  })
}

/** What stands between the parenthesis at `from` and the one that closes it. */
function balanced(text: string, from: number): string {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1
    if (text[at] === ')') depth -= 1
    if (depth === 0) return text.slice(from + 1, at)
  }
  throw new Error(`a parenthesis is not closed: ${text}`)
}
