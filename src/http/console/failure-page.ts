import { html } from 'hono/html'
import type { Failure } from '../errors.ts'
import type { Html, Page } from './page.ts'

const HEADINGS: Readonly<Record<number, string>> = {
  400: 'This cannot be understood',
  403: 'This is not allowed',
  404: 'There is nothing here',
  409: 'This does not go together with what is there',
  412: 'It was changed in the meantime',
  429: 'Too many requests',
  503: 'The service cannot answer now',
}

/** A document that asks for an address of ours again. */
export const againPage = (path: string): Html => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=${path}">
<title>Keymesh</title>
</head>
<body><p><a href="${path}">Go on to the console</a></p></body>
</html>`

/** What went wrong, and where to go from here. */
export function failurePage({ status, answer }: Failure): Page {
  const heading = HEADINGS[status] ?? (status < 500 ? 'This was refused' : 'The service met an error')
  const details = Object.entries(answer.validationDetails ?? {})
  return {
    title: heading,
    section: null,
    content: html`<div class="narrow">
<h1>${heading}</h1>
<p>${answer.message}</p>
${
  details.length === 0
    ? ''
    : html`<ul>${details.map(([field, texts]) => html`<li><strong>${field}</strong> ${texts.join(', ')}</li>`)}</ul>`
}
<p><a href="/console">Go to the mesh</a></p>
<p class="faint">Error ${answer.errorId}</p>
</div>`,
  }
}
