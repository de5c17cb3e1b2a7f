import { html } from 'hono/html'
import type { Html } from './page.ts'

export interface Action {
  /** Unique on the page. */
  readonly id: string
  /** One or two words on the button. */
  readonly label: string
  /** Where the form is posted to. */
  readonly path: string
  /** What will happen. With it the button opens a question; without, it acts at once. */
  readonly asks?: {
    /** Such as `Pause broker Vienna?` */
    readonly question: string
    readonly explanation: Html | string
    /** More fields, each with its label. */
    readonly fields?: Html
  }
  /** Hidden fields. */
  readonly values?: Readonly<Record<string, string>>
  readonly look?: 'primary' | 'danger'
  /** Then the button is off and this says why, beside it. */
  readonly offBecause?: string | null
}

/** A form behind a button. The question is a popover: no script, Escape closes it, the focus goes back to the button. */
export function actionButton(action: Action): Html {
  const { id, label, asks, look = '', offBecause = null } = action
  if (offBecause !== null) {
    return html`<span class="action-off"><button type="button" aria-disabled="true" aria-describedby="${id}-why">${label}</button>
<span class="why" id="${id}-why">${offBecause}</span></span>`
  }
  if (asks === undefined) {
    return html`<form method="post" action="${action.path}" id="${id}">${hidden(action)}<button type="submit" class="${look}">${label}</button></form>`
  }
  return html`<button type="button" class="${look}" id="${id}" popovertarget="${id}-question" aria-haspopup="dialog">${label}</button>
<div popover id="${id}-question" class="question" role="dialog" aria-labelledby="${id}-title" aria-describedby="${id}-text">
<h2 id="${id}-title">${asks.question}</h2>
<div id="${id}-text">${typeof asks.explanation === 'string' ? html`<p>${asks.explanation}</p>` : asks.explanation}</div>
<form method="post" action="${action.path}">${hidden(action)}
${asks.fields ?? ''}
<div class="actions">
<button type="button" popovertarget="${id}-question" popovertargetaction="hide"${look === 'danger' ? html` autofocus` : ''}>Cancel</button>
<button type="submit" class="${look === '' ? 'primary' : look}"${look === 'danger' ? '' : html` autofocus`}>${label}</button>
</div>
</form>
</div>`
}

const hidden = ({ values = {} }: Action): Html =>
  html`${Object.entries(values).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`

/** Why those who are not administrators cannot do it; null for those who are. */
export const forAdministrators = (isAdministrator: boolean): string | null =>
  isAdministrator ? null : 'Only an administrator of the account may do this.'
