import { html } from 'hono/html'
import type { Membership } from '../../store/users.ts'
import type { Html, Page } from './page.ts'

export interface SignInForm {
  /** Where to go afterwards. */
  readonly next: string
  readonly userName: string
  /** Why the last attempt did not work. */
  readonly problem: string | null
}

export function signInPage({ next, userName, problem }: SignInForm): Page {
  const invalid = problem === null ? '' : html` aria-invalid="true" aria-describedby="problem"`
  return {
    title: 'Sign in',
    section: null,
    content: html`<div class="entrance">
<p class="brand">Keymesh</p>
<h1>Sign in</h1>
${problem === null ? '' : html`<p class="notice bad" id="problem" role="alert">${problem}</p>`}
<form method="post" action="/console/sign-in" class="stacked">
<input type="hidden" name="next" value="${next}">
<label for="username">User name</label>
<input id="username" name="username" value="${userName}" autocomplete="username" autocapitalize="none" spellcheck="false" required maxlength="256"${invalid}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${invalid}>
<button class="primary" type="submit">Sign in</button>
</form>
</div>`,
  }
}

/** For a user of several accounts. */
export function accountPage(userName: string, memberships: readonly Membership[]): Page {
  return {
    title: 'Choose an account',
    section: null,
    content: html`<div class="entrance">
<p class="brand">Keymesh</p>
<h1>Choose an account</h1>
<p>${userName} belongs to several accounts. To work in another one later, sign out and in again.</p>
<form method="post" action="/console/account" class="stacked">
${memberships.map(({ accountName }): Html => html`<button name="account" value="${accountName}" type="submit">${accountName}</button>`)}
</form>
<form method="post" action="/console/sign-out"><button class="quiet" type="submit">Sign out</button></form>
</div>`,
  }
}
