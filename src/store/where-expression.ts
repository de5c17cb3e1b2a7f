import { parse } from '@rsql/parser'
import { InvalidInputError } from '../domain/errors.ts'
import { hasUnsafeCharacters } from '../domain/names.ts'

export const WHERE_MIN_LENGTH = 5
export const WHERE_MAX_LENGTH = 1024
const MAX_DEPTH = 20
const MAX_COMPARISONS = 50

export type WhereOperator = '==' | '!=' | '>' | '>=' | '<' | '<=' | 'in' | 'out'

export interface WhereComparison {
  readonly kind: 'comparison'
  /** `attributes.name` */
  readonly selector: string
  readonly operator: WhereOperator
  /** At least one; exactly one unless the operator is `in` or `out`. */
  readonly values: readonly string[]
}

/**
 * A conjunction inside parentheses speaks of one element of each array that it names more than once; parentheses right
 * around it begin a new element, and without any each condition looks for an element of its own.
 */
export interface WhereConjunction {
  readonly kind: 'and'
  readonly items: readonly WhereExpression[]
  readonly elements: 'independent' | 'inherited' | 'own'
}

export interface WhereDisjunction {
  readonly kind: 'or'
  readonly items: readonly WhereExpression[]
}

export type WhereExpression = WhereComparison | WhereConjunction | WhereDisjunction

type SyntaxTree = ReturnType<typeof parse>

/** Stands for "a pair of parentheses begins here"; no text of a client contains it. */
const GROUP = '\u0001'

/** Reads RSQL. Throws InvalidInputError with the path `where`, whatever the text is. */
export function parseWhere(text: string): WhereExpression {
  if (text.length < WHERE_MIN_LENGTH || text.length > WHERE_MAX_LENGTH) {
    throw whereProblem(`must be ${WHERE_MIN_LENGTH} to ${WHERE_MAX_LENGTH} characters long, it has ${text.length}`)
  }
  if (hasUnsafeCharacters(text)) throw whereProblem('must not contain control characters')
  syntaxTree(text)
  // The tree does not tell where parentheses were, so they are marked by a condition, and the text is parsed again.
  const reader = new TreeReader()
  return reader.read(syntaxTree(markGroups(text)), { depth: 0, inGroup: false, isGroup: false })
}

export function whereProblem(...messages: readonly string[]): InvalidInputError {
  return new InvalidInputError(
    'The query',
    messages.map((message) => ({ path: 'where', message })),
  )
}

function syntaxTree(text: string): SyntaxTree {
  try {
    return parse(text)
  } catch (error) {
    // The message repeats the whole text, which the client knows.
    const message = error instanceof Error ? error.message.replace(` in "${text}"`, '') : 'it cannot be read'
    throw whereProblem(`is no RSQL expression: ${message}`)
  }
}

/** `(a==1;b==2)` becomes `(GROUP==1;(a==1;b==2))`; the parentheses of `=in=(x,y)` stay. */
function markGroups(text: string): string {
  let marked = ''
  let quote: string | null = null
  let previous = ''
  const closings: string[] = []
  for (let position = 0; position < text.length; position += 1) {
    const character = text.charAt(position)
    if (quote !== null && character === '\\') {
      marked += text.slice(position, position + 2)
      position += 1
      continue
    }
    if (quote !== null) quote = character === quote ? null : quote
    else if (character === '"' || character === "'") quote = character
    else if (character === '(') {
      const isGroup = !'=<>'.includes(previous) || previous === ''
      closings.push(isGroup ? '))' : ')')
      if (isGroup) marked += `(${GROUP}==1;`
    } else if (character === ')') {
      marked += closings.pop() === '))' ? ')' : ''
    }
    marked += character
    if (character !== ' ') previous = character
  }
  return marked
}

interface Place {
  readonly depth: number
  /** Somewhere inside parentheses. */
  readonly inGroup: boolean
  /** Right inside parentheses. */
  readonly isGroup: boolean
}

class TreeReader {
  #comparisons = 0

  read(tree: SyntaxTree, place: Place): WhereExpression {
    if (place.depth > MAX_DEPTH) throw whereProblem(`must not be nested more than ${MAX_DEPTH} deep`)
    if (tree.type === 'COMPARISON') return this.#comparison(tree)
    const { left, right } = tree
    if (left.type === 'COMPARISON' && left.left.selector === GROUP) {
      return this.read(right, { depth: place.depth + 1, inGroup: true, isGroup: true })
    }
    const inner = { ...place, isGroup: false }
    if (isAnd(tree.operator)) {
      const items = chain(tree, isAnd).map((each) => this.read(each, inner))
      return { kind: 'and', items, elements: place.isGroup ? 'own' : place.inGroup ? 'inherited' : 'independent' }
    }
    return { kind: 'or', items: chain(tree, (operator) => !isAnd(operator)).map((each) => this.read(each, inner)) }
  }

  #comparison(tree: Extract<SyntaxTree, { readonly type: 'COMPARISON' }>): WhereComparison {
    this.#comparisons += 1
    if (this.#comparisons > MAX_COMPARISONS) throw whereProblem(`must not have more than ${MAX_COMPARISONS} conditions`)
    const operator = OPERATORS[tree.operator]
    const { selector } = tree.left
    const { value } = tree.right
    if (operator === undefined || !Object.hasOwn(OPERATORS, tree.operator)) {
      throw whereProblem(`has the unknown operator ${tree.operator}; known are ${KNOWN_OPERATORS}`)
    }
    const takesList = operator === 'in' || operator === 'out'
    if (Array.isArray(value) && !takesList) throw whereProblem(`compares ${selector} with a list by ${tree.operator}`)
    return { kind: 'comparison', selector, operator, values: Array.isArray(value) ? value : [value] }
  }
}

const OPERATORS: Readonly<Record<string, WhereOperator>> = {
  '==': '==',
  '!=': '!=',
  '>': '>',
  '=gt=': '>',
  '>=': '>=',
  '=ge=': '>=',
  '<': '<',
  '=lt=': '<',
  '<=': '<=',
  '=le=': '<=',
  '=in=': 'in',
  '=out=': 'out',
}
const KNOWN_OPERATORS = Object.keys(OPERATORS).join(' ')

const isAnd = (operator: string): boolean => operator === ';' || operator === 'and'

/** The links of a chain of one operator, in order; what stands in parentheses is a link by itself. */
function chain(tree: SyntaxTree, belongs: (operator: string) => boolean): readonly SyntaxTree[] {
  const links: SyntaxTree[] = []
  let rest = [tree]
  while (rest.length > 0) {
    const [next, ...others] = rest
    if (next === undefined) break
    if (next.type === 'LOGIC' && belongs(next.operator) && !isMarked(next)) rest = [next.left, next.right, ...others]
    else {
      links.push(next)
      rest = others
    }
  }
  return links
}

const isMarked = (tree: SyntaxTree): boolean =>
  tree.type === 'LOGIC' && tree.left.type === 'COMPARISON' && tree.left.left.selector === GROUP
