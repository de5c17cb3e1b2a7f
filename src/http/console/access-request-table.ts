import { html } from 'hono/html'
import type { AccessRequestState } from '../../domain/registration.ts'
import type { QueuedAccessRequest } from '../../store/portal-access-requests.ts'
import { actionButton, forAdministrators } from './action-button.ts'
import { chip, segment, type Tone, table, when } from './components.ts'
import type { Html } from './page.ts'
import { productPath, registrationPath } from './record-parts.ts'

const STATES: Readonly<Record<AccessRequestState, readonly [tone: Tone, words: string]>> = {
  PENDING_APPROVAL: ['warn', 'waits for a decision'],
  APPROVED: ['busy', 'approved'],
  LIVE: ['good', 'live'],
  ERROR: ['bad', 'error'],
  REJECTED: ['idle', 'declined'],
  REVOKED: ['idle', 'revoked'],
}

export interface ExplainedRequest extends QueuedAccessRequest {
  readonly explanation: string
}

export interface AccessRequestTable {
  readonly registrationId: string
  readonly accessRequests: readonly ExplainedRequest[]
  readonly nowMs: number
  readonly isAdministrator: boolean
}

/** What a registration asked for, and the decisions that wait. */
export function accessRequestTable(data: AccessRequestTable): Html {
  const { accessRequests, nowMs } = data
  return table({
    caption: 'Access requests',
    columns: [{ name: 'Product' }, { name: 'Plan' }, { name: 'State' }, { name: 'Asked' }, { name: 'Decision' }],
    rows: accessRequests.map((request) => {
      const [tone, words] = STATES[request.state]
      return {
        id: `request-${request.accessRequestId}`,
        cells: [
          html`<a href="${productPath(request.productId)}">${request.productName ?? request.productId}</a> ${request.productVersion} <span class="faint">${request.accessRequestId}</span>`,
          request.planId,
          html`<div>${chip(tone, words)} <span class="faint">${request.explanation}</span></div>`,
          when(request.createdTime, nowMs),
          decision(data, request),
        ],
      }
    }),
    empty: 'It has asked for nothing yet.',
  })
}

function decision({ registrationId, isAdministrator }: AccessRequestTable, request: ExplainedRequest): Html {
  if (request.state !== 'PENDING_APPROVAL') return html`<span class="faint">none needed</span>`
  const { accessRequestId, productName, productId, productVersion, planId } = request
  const path = `${registrationPath(registrationId)}/access-requests/${segment(accessRequestId)}`
  const what = `plan ${planId} of ${productName ?? productId} ${productVersion}`
  const offBecause = forAdministrators(isAdministrator)
  if (offBecause !== null) return html`<span class="why">${offBecause}</span>`
  return html`<div class="actions">${actionButton({
    id: `approve-${accessRequestId}`,
    label: 'Approve',
    path: `${path}/approve`,
    look: 'primary',
    asks: {
      question: 'Approve this access request?',
      explanation: `The application gets ${what}: its client usernames, topics and queues are made on every broker of the product, at once.`,
    },
  })}${actionButton({
    id: `decline-${accessRequestId}`,
    label: 'Decline',
    path: `${path}/decline`,
    look: 'danger',
    asks: {
      question: 'Decline this access request?',
      explanation: `The application does not get ${what}. It may ask again.`,
    },
  })}</div>`
}
