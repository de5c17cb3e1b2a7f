import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { App } from '../app.ts'
import { HIDDEN } from './access.ts'

/** Where a page finds its style, script and icon. */
export interface AssetAddresses {
  readonly style: string
  readonly script: string
  readonly icon: string
}

const FILES = [
  { role: 'style', files: ['console.css', 'mesh.css', 'records.css'], type: 'text/css; charset=utf-8' },
  { role: 'script', files: ['console.js'], type: 'text/javascript; charset=utf-8' },
  { role: 'icon', files: ['icon.svg'], type: 'image/svg+xml' },
] as const

/** The address holds a digest of the content, so that a browser keeps it for as long as it is the same. */
const SERVED = FILES.map(({ role, files, type }) => {
  const content = files.map((file) => readFileSync(new URL(`./assets/${file}`, import.meta.url), 'utf8')).join('\n')
  const digest = createHash('sha256').update(content).digest('base64url').slice(0, 12)
  return { role, type, content, path: `/assets/${digest}/${files[0]}` }
})

const addressOf = (role: keyof AssetAddresses): string =>
  `/console${SERVED.find((each) => each.role === role)?.path ?? ''}`

export const ASSETS: AssetAddresses = {
  style: addressOf('style'),
  script: addressOf('script'),
  icon: addressOf('icon'),
}

export async function assetRoutes(console: App): Promise<void> {
  for (const { path, type, content } of SERVED) {
    console.get(path, { config: { access: 'public', rateLimit: false }, schema: HIDDEN }, async (_request, reply) =>
      reply.type(type).header('cache-control', 'public, max-age=31536000, immutable').send(content),
    )
  }
}
