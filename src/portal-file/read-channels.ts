import type { Channel, Viewpoint } from '../domain/catalogue.ts'
import type { Problem } from '../domain/errors.ts'
import type { JsonValue } from '../domain/portal-file.ts'
import { channelProblem, DEFAULT_MAX_TOPICS, deriveTopics } from '../domain/topics.ts'
import type { Bundle } from './bundle-references.ts'
import { follow } from './follow-references.ts'
import { isList, isMap, own } from './portal-file-references.ts'
import type { Path } from './yaml-source.ts'

export interface ReadChannels {
  readonly channels: readonly Channel[]
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/**
 * The channels of an AsyncAPI 2.x document in the client's view: `subscribe` lets a client subscribe and `publish` lets it
 * publish, and the other way round for a document in the provider's view.
 */
export function readChannels(bundle: Bundle, viewpoint: Viewpoint): ReadChannels {
  const result = { channels: [] as Channel[], problems: [] as Problem[], warnings: [] as Problem[] }
  const map = own(bundle.root, 'channels')
  if (!isMap(map)) {
    result.problems.push(bundle.problemAt(['channels'], 'The document has no map of channels.'))
    return result
  }
  for (const [name, entry] of Object.entries(map)) {
    const path = ['channels', name]
    const item = follow(bundle.root, entry, path)
    if (!item.ok) {
      result.problems.push(bundle.problemAt(path, item.problem))
      continue
    }
    if (!isMap(item.value)) {
      result.problems.push(bundle.problemAt(path, 'A channel must be a map.'))
      continue
    }
    if (isMap(entry) && item.value !== entry && Object.keys(entry).length > 1) {
      result.warnings.push(bundle.problemAt(path, 'What stands beside a `$ref` is ignored.'))
    }
    const [says, mirrored] =
      viewpoint === 'client' ? (['publish', 'subscribe'] as const) : (['subscribe', 'publish'] as const)
    const channel: Channel = {
      name,
      clientMayPublish: isMap(own(item.value, says)),
      clientMaySubscribe: isMap(own(item.value, mirrored)),
      parameterEnums: readParameters(bundle, own(item.value, 'parameters'), [...item.path, 'parameters'], result),
    }
    judge(bundle, channel, path, result)
    result.channels.push(channel)
  }
  return result
}

interface Findings {
  readonly problems: Problem[]
  readonly warnings: Problem[]
}

/** A channel that no filter can save is a problem; one that needs a filter, or matches more than it says, is a warning. */
function judge(bundle: Bundle, channel: Channel, path: Path, { problems, warnings }: Findings): void {
  const problem = channelProblem(channel)
  if (problem !== null) {
    problems.push(bundle.problemAt(path, `The channel ${problem}.`))
    return
  }
  const topicsOf = (one: Channel) => deriveTopics({ channels: [one], filters: [], maxTopics: DEFAULT_MAX_TOPICS })
  const topics = topicsOf(channel)
  if (topics.ok) {
    for (const warning of topics.warnings) warnings.push(bundle.problemAt(path, warning))
    return
  }
  const shortest = topicsOf({ ...channel, parameterEnums: shortestValues(channel.parameterEnums) })
  if (shortest.ok) warnings.push(bundle.problemAt(path, topics.problem))
  else problems.push(bundle.problemAt(path, shortest.problem))
}

function shortestValues(enums: Channel['parameterEnums']): Channel['parameterEnums'] {
  const byLength = (one: string, other: string) => one.length - other.length
  return Object.fromEntries(Object.entries(enums).map(([name, list]) => [name, list.toSorted(byLength).slice(0, 1)]))
}

function readParameters(
  bundle: Bundle,
  value: JsonValue | undefined,
  path: Path,
  findings: Findings,
): Channel['parameterEnums'] {
  if (!isMap(value)) return {}
  const enums: [string, readonly string[]][] = []
  for (const [name, entry] of Object.entries(value)) {
    const parameter = follow(bundle.root, entry, [...path, name])
    const schema = parameter.ok && isMap(parameter.value) ? own(parameter.value, 'schema') : undefined
    if (!parameter.ok || schema === undefined) continue
    const followed = follow(bundle.root, schema, [...parameter.path, 'schema'])
    if (!followed.ok || !isMap(followed.value)) continue
    const list = own(followed.value, 'enum')
    const constant = own(followed.value, 'const')
    if (isList(list)) enums.push([name, readValues(bundle, list, [...followed.path, 'enum'], findings)])
    else if (constant !== undefined)
      enums.push([name, readValues(bundle, [constant], [...followed.path, 'const'], findings)])
  }
  return Object.fromEntries(enums)
}

/** A number or boolean stands in a topic as it is written in the document. */
function readValues(bundle: Bundle, list: readonly JsonValue[], path: Path, findings: Findings): readonly string[] {
  const isList = path.at(-1) === 'enum'
  return list.flatMap((value, position) => {
    const place = bundle.locate(isList ? [...path, position] : path)
    if (typeof value === 'string') return [value]
    const text = place.source.scalarText(place.path)
    if (value === null || typeof value === 'object' || text === undefined) {
      findings.problems.push(bundle.problemAt(path, 'A value of a channel parameter must be text.'))
      return []
    }
    const message = `The parameter value ${text} is no text; it is used as it is written.`
    findings.warnings.push(bundle.problemAt(isList ? [...path, position] : path, message))
    return [text]
  })
}
