import { levelTextProblem } from './topic-pattern.ts'

/** One level of a channel name: literal text and parameters in turn. */
export type TemplateLevel = readonly TemplatePart[]
export type TemplatePart = { readonly text: string } | { readonly parameter: string }

export type TemplateResult =
  | { readonly ok: true; readonly levels: readonly TemplateLevel[]; readonly parameters: readonly string[] }
  | { readonly ok: false; readonly problem: string }

/** Splits a channel name such as `train/{line}/v{major}` into levels; a problem says what it is about the name. */
export function parseTemplate(channelName: string): TemplateResult {
  const levels: TemplateLevel[] = []
  const parameters = new Set<string>()
  if (channelName.startsWith('#')) return { ok: false, problem: 'begins with `#`, which the broker keeps for itself' }
  for (const levelText of splitLevels(channelName)) {
    if (levelText === '') return { ok: false, problem: 'has an empty level, which an ACL exception cannot have' }
    const parts = parseLevel(levelText)
    for (const [position, part] of parts.entries()) {
      if ('parameter' in part) {
        if (part.parameter === '') return { ok: false, problem: 'has a parameter without a name' }
        parameters.add(part.parameter)
        continue
      }
      const problem = literalProblem(part.text, position === parts.length - 1)
      if (problem !== null) return { ok: false, problem: `${problem} in \`${levelText}\`` }
    }
    levels.push(parts)
  }
  return { ok: true, levels, parameters: [...parameters].sort() }
}

/** A `/` inside braces belongs to the parameter's name. */
const splitLevels = (channelName: string): readonly string[] => channelName.split(/\/(?![^{}]*\})/)

function parseLevel(levelText: string): TemplateLevel {
  return levelText
    .split(/(\{[^{}]*\})/)
    .filter((piece) => piece !== '')
    .map((piece) => (/^\{[^{}]*\}$/.test(piece) ? { parameter: piece.slice(1, -1) } : { text: piece }))
}

function literalProblem(text: string, isLast: boolean): string | null {
  if (/[{}]/.test(text)) return 'has a brace without its pair'
  if (!isLast && text.endsWith('*')) return 'contains `*` before the end of a level'
  return levelTextProblem(text)
}
