import { html } from 'hono/html'
import type { Action, Step } from '../../reconcile/plan.ts'
import { MEMBER_WORDS, OBJECT_WORDS } from '../../reconcile/render.ts'
import { chip } from './components.ts'
import type { Html } from './page.ts'
import { attributeWords, reasonSentence } from './record-parts.ts'

// Steps for a person: of a plan in full, of a run as the lines that it kept.

const SIGNS = {
  '+': { look: 'adds', words: 'Adds: ' },
  '-': { look: 'removes', words: 'Removes: ' },
  '~': { look: 'changes', words: 'Changes: ' },
} as const

type Sign = keyof typeof SIGNS

const signed = (sign: Sign, content: Html): Html =>
  html`<li class="step ${SIGNS[sign].look}"><span class="sign" aria-hidden="true">${sign === '-' ? '−' : sign}</span><div><span class="visually-hidden">${SIGNS[sign].words}</span>${content}</div></li>
`

const isSign = (text: string): text is Sign => Object.hasOwn(SIGNS, text)

/** A line of `renderAction` or `renderStep`: the sign, what is done, the reason in parentheses, marks in brackets. */
const LINE = /^([+~-]) (.*) \(([a-z-]+)\)(?: \[(.*)\])?$/s

/** Lines as a run keeps them; one that was cut short is shown as it is. */
export function stepLines(lines: readonly string[]): Html {
  let before = ''
  return html`<ol class="steps">${lines.map((line) => {
    const [, sign = '', done = '', reason = '', marks] = LINE.exec(line) ?? []
    const because = reason === before ? '' : html`<span class="faint because">${reasonSentence(reason)}</span>`
    before = reason
    if (!isSign(sign))
      return html`<li class="step"><span class="sign" aria-hidden="true"></span><div>${line}</div></li>`
    return signed(
      sign,
      html`${capitalised(done)}${marks === undefined ? '' : html` <strong>${marks}</strong>`}${because}`,
    )
  })}</ol>`
}

const capitalised = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

/** The steps of a plan with what each changes. A reason is given where it begins. */
export function planSteps(steps: readonly Step[]): Html {
  return html`<ol class="steps">${steps.map((step, index) => {
    const because = becauseOf(step)
    const before = steps[index - 1]
    const isSame = before !== undefined && becauseOf(before) === because
    return signed(signOf(step.action), planStep(step, isSame ? null : because))
  })}</ol>`
}

const becauseOf = ({ action, decision, because }: Step): string =>
  `${reasonSentence(action.reason)}${decision === 'held' && because !== undefined ? ` ${because}` : ''}`

const SIGN_OF: Readonly<Record<Action['type'], Sign>> = {
  create: '+',
  'add-member': '+',
  update: '~',
  'set-password': '~',
  'remove-member': '-',
  delete: '-',
}
const signOf = ({ type }: Action): Sign => SIGN_OF[type]

function planStep({ action, disruptive, decision }: Step, because: string | null): Html {
  const marks = [
    disruptive ? chip('bad', 'drops live clients') : null,
    decision === 'held' ? chip('warn', 'held back') : null,
  ].filter((mark) => mark !== null)
  return html`${whatIsDone(action)} ${marks.map((mark) => html`${mark} `)}${because === null ? '' : html`<span class="faint because">${because}</span>`}`
}

function whatIsDone(action: Action): Html {
  switch (action.type) {
    case 'create':
      return html`Create the ${OBJECT_WORDS[action.object.kind]} <code>${action.object.name}</code>`
    case 'update':
      return html`Change the ${OBJECT_WORDS[action.kind]} <code>${action.name}</code>: ${Object.entries(
        action.changes,
      ).map(
        ([name, { before, after }], index) =>
          html`${index === 0 ? '' : ', '}${attributeWords(name)} <code>${before === null ? 'not set' : String(before)}</code> <span aria-hidden="true">→</span><span class="visually-hidden">to</span> <code>${String(after)}</code>`,
      )}`
    case 'set-password':
      return html`Write the password of client username <code>${action.name}</code> again, version ${action.credentialVersion}`
    case 'add-member':
      return html`Add to the ${OBJECT_WORDS[action.kind]} <code>${action.name}</code> the ${MEMBER_WORDS[action.memberKind]} <code>${action.member}</code>`
    case 'remove-member':
      return html`Remove from the ${OBJECT_WORDS[action.kind]} <code>${action.name}</code> the ${MEMBER_WORDS[action.memberKind]} <code>${action.member}</code>`
    case 'delete':
      return html`Delete the ${OBJECT_WORDS[action.kind]} <code>${action.name}</code>`
    default: {
      const unreachable: never = action
      return unreachable
    }
  }
}
