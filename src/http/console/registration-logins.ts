import { html } from 'hono/html'
import { standingOf } from '../../domain/verdict.ts'
import type { BrokerExplanation } from '../../store/explain-registration.ts'
import type { Tone } from './components.ts'
import type { Html } from './page.ts'

type Login = BrokerExplanation['logins'][number]

const SIGNS: Readonly<Record<Tone, string>> = { good: '✓', bad: '✕', warn: '!', busy: '…', idle: '–' }

/** What logins with the credentials came to, over each protocol; what was not accepted says why. */
export function loginList(logins: readonly Login[]): Html {
  if (logins.length === 0) return html`<span class="faint">none tried</span>`
  const protocols = [...new Set(logins.map(({ protocol }) => protocol))]
  const failed = logins.filter((login) => toneOf(login) !== 'good')
  return html`<div><ul class="protocols">${protocols.map((protocol) => {
    const own = logins.filter((login) => login.protocol === protocol)
    const tones = own.map(toneOf)
    const tone: Tone = tones.includes('bad') ? 'bad' : tones.includes('warn') ? 'warn' : 'good'
    const words = own.map((login) => `${login.consumerKey} ${outcomeWords(login)}`).join(', ')
    return html`<li class="${tone}" title="${words}"><span aria-hidden="true">${SIGNS[tone]}</span> ${protocol}<span class="visually-hidden">: ${words}</span></li>`
  })}</ul>${
    failed.length === 0
      ? ''
      : html`<ul class="login-problems">${failed.map((login) => html`<li><code>${login.consumerKey}</code> over ${login.protocol}: ${outcomeWords(login)}${login.detail === '' ? '' : html`. <span class="faint">${login.detail}</span>`}</li>`)}</ul>`
  }</div>`
}

function toneOf({ outcome, control }: Login): Tone {
  const standing = standingOf(outcome)
  if (standing === 'rejected') return 'bad'
  return standing === 'not-verified' || control?.outcome === 'accepts-anything' ? 'warn' : 'good'
}

function outcomeWords({ outcome, reason, control }: Login): string {
  if (outcome === 'not-verified') return `not verified (${reason ?? 'unknown'})`
  return control?.outcome === 'accepts-anything' ? `${outcome}, as is any password` : outcome
}
