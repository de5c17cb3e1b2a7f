import { html } from 'hono/html'
import type { AssetAddresses } from './assets.ts'
import type { Notice } from './notices.ts'

/**
 * The contract of a console page.
 *
 * - Rendering is apart from reading. `x-page.ts` holds pure functions from data to `Html`, `x-routes.ts` reads, calls them
 *   and answers `sendPage(request, reply, { title, section, content, live })`.
 * - A group of pages is one function `(console: App, dependencies) => Promise<void>`, one line in `console-routes.ts`.
 *   Paths are relative to `/console`; `config: { access: LOOK }` or `CHANGE`, `schema: { ...HIDDEN, … }`.
 * - Every text goes through the escaping `html` of `hono/html`; `raw` is for nothing. No inline style, no inline script, no
 *   `on…` attribute: the content security policy refuses them.
 * - `content` begins with `pageHead(…)`, which has the page's only `h1`. What is shared is in `components.ts`.
 * - A page with `live` is read again while its tab is visible, and `main` is changed in place where it differs. Give an `id`
 *   to rows and cards that come and go, so that focus and what was opened stay where they are.
 * - A form posts to a route with `CHANGE` and an `audit` name, which does it, calls `leaveNotice` and redirects with 303.
 *   `actionButton` of `components.ts` asks first and says why a button is off.
 */
export interface Page {
  readonly title: string
  /** Which entry of the navigation it belongs to. */
  readonly section: Section | null
  readonly content: Html
  /** One sentence that says how things stand. It is read out when it changes. Without it the page stays as it is. */
  readonly live?: string
}

/** Never a promise here: pages read nothing while they are rendered. */
export type Html = ReturnType<typeof html>

export const SECTIONS = [
  { section: 'mesh', name: 'Mesh', path: '/console' },
  { section: 'registrations', name: 'Registrations', path: '/console/registrations' },
  { section: 'drift', name: 'Drift', path: '/console/drift' },
  { section: 'runs', name: 'Runs', path: '/console/runs' },
  { section: 'catalogue', name: 'Catalogue', path: '/console/catalogue' },
] as const
export type Section = (typeof SECTIONS)[number]['section']

/** Who looks; null on pages for anybody. */
export interface Viewer {
  readonly userName: string
  readonly accountName: string
  readonly isAdministrator: boolean
}

export interface Frame {
  readonly viewer: Viewer | null
  readonly notice: Notice | null
  readonly assets: AssetAddresses
}

/** A whole document. */
export function layout(page: Page, { viewer, notice, assets }: Frame): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${page.title} · Keymesh</title>
<link rel="icon" href="${assets.icon}" type="image/svg+xml">
<link rel="stylesheet" href="${assets.style}">
<script src="${assets.script}" defer></script>
</head>
<body>
<a class="skip-link" href="#main">Skip to the content</a>
${viewer === null ? '' : header(page.section, viewer)}
<div class="notices" role="status">${notice === null ? '' : html`<p class="notice ${notice.tone}">${notice.text}</p>`}</div>
${mainPart(page)}
<p class="visually-hidden" id="announcer" role="status"></p>
</body>
</html>`
}

/** What is sent alone when a page is read again. */
export function mainPart({ content, live }: Page): Html {
  const attributes = live === undefined ? '' : html` data-live="${live}"`
  return html`<main id="main" tabindex="-1"${attributes}>
${content}
</main>`
}

function header(current: Section | null, { userName, accountName }: Viewer): Html {
  return html`<header class="site-header">
<a class="brand" href="/console">Keymesh</a>
<nav aria-label="Console">
<ul>
${SECTIONS.map(({ section, name, path }) => {
  const here = section === current ? html` aria-current="page"` : ''
  return html`<li><a href="${path}"${here}>${name}</a></li>`
})}
</ul>
</nav>
<div class="who">
<span class="who-is"><span class="visually-hidden">Signed in as</span> ${userName} <span class="who-where">in ${accountName}</span></span>
<form method="post" action="/console/sign-out"><button class="quiet" type="submit">Sign out</button></form>
</div>
</header>`
}
