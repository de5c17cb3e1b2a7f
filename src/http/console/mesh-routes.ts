import { html } from 'hono/html'
import type { App } from '../app.ts'
import type { HttpDependencies } from '../dependencies.ts'
import { HIDDEN, LOOK } from './access.ts'
import { pageHead } from './components.ts'
import { sendPage } from './send-page.ts'

export async function meshPages(console: App, _dependencies: HttpDependencies): Promise<void> {
  console.get('/', { config: { access: LOOK }, schema: HIDDEN }, async (request, reply) =>
    sendPage(request, reply, { title: 'Mesh', section: 'mesh', content: html`${pageHead({ title: 'Mesh' })}` }),
  )
}
