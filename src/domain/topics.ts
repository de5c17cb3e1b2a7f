import type { Channel } from './catalogue.ts'
import type { Filters } from './registration.ts'
import { levelCovers, topicProblem, topicValueProblem } from './topic-pattern.ts'
import { parseTemplate, type TemplateLevel } from './topic-template.ts'

/** Topics of one registration in one direction; past the bound is an error, never a wider topic. */
export const DEFAULT_MAX_TOPICS = 1000

export interface TopicsInput {
  readonly channels: readonly Channel[]
  /** The first that names a parameter binds it: the access request's before the registration's. */
  readonly filters: readonly Filters[]
  /** Bound of each direction. */
  readonly maxTopics: number
}

export type TopicsResult =
  | {
      readonly ok: true
      /** SMF topics, sorted, without duplicates; wildcards are `*` at the end of a level, never `>`. */
      readonly publish: readonly string[]
      readonly subscribe: readonly string[]
      /** Sorted, without duplicates. */
      readonly warnings: readonly string[]
    }
  | { readonly ok: false; readonly problem: string }

/**
 * Topics from channels and filters.
 *
 * A parameter becomes its filter's values, else its enum's, else `*`; it has the same value wherever it stands in one
 * channel. A filter only narrows: where the parameter has an enum, a value outside of it grants nothing and warns, and a
 * value that ends in `*` stands for what it matches of the enum.
 *
 * | level     | p unbound | p = `x` | p = `x*`           |
 * |-----------|-----------|---------|--------------------|
 * | `{p}`     | `*`       | `x`     | `x*`               |
 * | `abc{p}`  | `abc*`    | `abcx`  | `abcx*`            |
 * | `{p}abc`  | `*` warns | `xabc`  | `x*` warns         |
 * | `a{p}b`   | `*` warns | `axb`   | `ax*` warns        |
 *
 * A level without text, such as in `/a` or `a//b`, is refused: an SMF topic exception cannot have one.
 */
export function deriveTopics(input: TopicsInput): TopicsResult {
  const publish = new Set<string>()
  const subscribe = new Set<string>()
  const warnings = new Set<string>()
  const problems: string[] = []
  const used = new Set<string>()
  for (const channel of input.channels) {
    if (!channel.clientMayPublish && !channel.clientMaySubscribe) continue
    const derived = deriveChannel(channel, input, used)
    if (!derived.ok) {
      problems.push(`Channel \`${channel.name}\` ${derived.problem}.`)
      continue
    }
    for (const warning of derived.warnings) warnings.add(`Channel \`${channel.name}\`: ${warning}.`)
    for (const topic of derived.topics) {
      if (channel.clientMayPublish && publish.size <= input.maxTopics) publish.add(topic)
      if (channel.clientMaySubscribe && subscribe.size <= input.maxTopics) subscribe.add(topic)
    }
  }
  for (const [direction, topics] of [
    ['publish', publish],
    ['subscribe', subscribe],
  ] as const) {
    if (topics.size > input.maxTopics)
      problems.push(`The channels give more than ${input.maxTopics} ${direction} topics: narrow them with filters.`)
  }
  // The least in sorted order, so that the order of the channels does not show.
  const [problem] = problems.sort()
  if (problem !== undefined) return { ok: false, problem }
  for (const warning of unusedFilters(input.filters, used)) warnings.add(warning)
  return { ok: true, publish: [...publish].sort(), subscribe: [...subscribe].sort(), warnings: [...warnings].sort() }
}

/** Why no topic can be derived from a channel whatever the filters are, or null; the text follows the channel's name. */
export function channelProblem(channel: Channel): string | null {
  const template = parseTemplate(channel.name)
  if (!template.ok) return template.problem
  for (const parameter of template.parameters) {
    for (const value of own(channel.parameterEnums, parameter)?.toSorted() ?? []) {
      const problem = topicValueProblem(value)
      if (problem !== null)
        return `has a parameter \`${parameter}\` whose enum value ${JSON.stringify(value)} ${problem}`
    }
  }
  return null
}

type Derived<Value> = ({ readonly ok: true; readonly warnings: readonly string[] } & Value) | Failed
type Failed = { readonly ok: false; readonly problem: string }

/** Values by parameter; a parameter that is not there is unbound. */
type Bindings = ReadonlyMap<string, readonly string[]>

type Template = ReturnType<typeof parseTemplate>

/** Thousands of registrations share the channels of a product: each is read once. */
const templates = new WeakMap<Channel, Template>()

function templateOf(channel: Channel): Template {
  const known = templates.get(channel)
  if (known !== undefined) return known
  const problem = channelProblem(channel)
  const template: Template = problem === null ? parseTemplate(channel.name) : { ok: false, problem }
  templates.set(channel, template)
  return template
}

function deriveChannel(channel: Channel, input: TopicsInput, used: Set<string>): Derived<{ topics: Set<string> }> {
  const template = templateOf(channel)
  if (!template.ok) return template
  const bound = bind(template.parameters, channel, input.filters, used)
  if (!bound.ok) return bound
  const warnings = new Set(bound.warnings)
  const topics = new Set<string>()
  let combinations = 1
  for (const values of bound.bindings.values()) combinations *= values.length
  if (combinations > input.maxTopics) {
    return {
      ok: false,
      problem: `gives ${combinations} topics, ${input.maxTopics} are allowed: narrow it with filters`,
    }
  }
  for (const assignment of assignments([...bound.bindings])) {
    const levels = template.levels.map((level) => renderLevel(level, assignment))
    const topic = levels.map((level) => level.text).join('/')
    const problem = topicProblem(topic)
    if (problem !== null) return { ok: false, problem: `gives the topic \`${topic}\`, which ${problem}` }
    for (const level of levels) if (level.warning !== null) warnings.add(level.warning)
    topics.add(topic)
  }
  return { ok: true, topics, warnings: [...warnings] }
}

function bind(
  parameters: readonly string[],
  channel: Channel,
  filters: readonly Filters[],
  used: Set<string>,
): Derived<{ bindings: Bindings }> {
  const bindings = new Map<string, readonly string[]>()
  const warnings: string[] = []
  for (const parameter of parameters) {
    const enumValues = own(channel.parameterEnums, parameter)
    const filterValues = filters.map((set) => own(set, parameter)).find((values) => values !== undefined)
    if (filterValues !== undefined) {
      used.add(parameter)
      if (filterValues.length === 0) return { ok: false, problem: `has a filter \`${parameter}\` without values` }
      for (const value of filterValues.toSorted()) {
        const problem = topicValueProblem(value)
        if (problem !== null) {
          return { ok: false, problem: `has a filter \`${parameter}\` whose value ${JSON.stringify(value)} ${problem}` }
        }
      }
    }
    const values = narrow(parameter, filterValues, enumValues, warnings)
    if (values !== undefined) bindings.set(parameter, [...new Set(values)].sort())
  }
  return { ok: true, bindings, warnings }
}

/** Filter values inside the enum; undefined when the parameter is unbound. */
function narrow(
  parameter: string,
  filterValues: readonly string[] | undefined,
  enumValues: readonly string[] | undefined,
  warnings: string[],
): readonly string[] | undefined {
  if (filterValues === undefined || enumValues === undefined) return filterValues ?? enumValues
  return filterValues.flatMap((value) => {
    if (enumValues.some((allowed) => levelCovers(allowed, value))) return [value]
    const matched = enumValues.filter((allowed) => levelCovers(value, allowed))
    if (matched.length === 0) {
      warnings.push(`filter value \`${value}\` of \`${parameter}\` is none of the enum's values and grants nothing`)
    }
    return matched
  })
}

/** One map of values for each combination; one empty map when nothing is bound. */
function assignments(
  bindings: readonly (readonly [string, readonly string[]])[],
): readonly ReadonlyMap<string, string>[] {
  let maps: ReadonlyMap<string, string>[] = [new Map()]
  for (const [parameter, values] of bindings) {
    maps = maps.flatMap((map) => values.map((value) => new Map(map).set(parameter, value)))
  }
  return maps
}

/**
 * Text before the first wildcard is kept. Where text of the channel follows an unbound parameter, the level is `*`
 * whatever else is bound, so that binding a parameter never widens a topic.
 */
function renderLevel(
  level: TemplateLevel,
  assignment: ReadonlyMap<string, string>,
): { readonly text: string; readonly warning: string | null } {
  let text = ''
  let wildcard: string | null = null
  let unbound: string | null = null
  let lost: string | null = null
  for (const part of level) {
    if ('text' in part) {
      if (part.text === '*') wildcard ??= ''
      else if (unbound !== null) return { text: '*', warning: wider(unbound) }
      else if (wildcard === null) text += part.text
      else lost ??= wildcard
      continue
    }
    const value = assignment.get(part.parameter)
    if (value === undefined) unbound ??= part.parameter
    if (wildcard !== null) {
      if (value !== undefined && value !== '*') lost ??= wildcard
    } else if (value === undefined || value.endsWith('*')) {
      text += value?.slice(0, -1) ?? ''
      wildcard = part.parameter
    } else {
      text += value
    }
  }
  return { text: wildcard === null ? text : `${text}*`, warning: lost === null ? null : wider(lost) }
}

const wider = (parameter: string): string =>
  `text after the wildcard of \`{${parameter}}\` cannot be expressed, so its level matches more than the channel says`

function unusedFilters(filters: readonly Filters[], used: ReadonlySet<string>): readonly string[] {
  const names = new Set(filters.flatMap((set) => Object.keys(set)))
  return [...names]
    .filter((name) => !used.has(name))
    .map((name) => `Filter \`${name}\` matches no parameter of the channels.`)
}

/** A parameter may be named like a property that every object has. */
function own(record: Readonly<Record<string, readonly string[]>>, name: string): readonly string[] | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
