// The compiler leaves what is no TypeScript where it is; the console serves these files.
import { cp } from 'node:fs/promises'

const ASSETS = 'src/http/console/assets'
await cp(new URL(`../${ASSETS}`, import.meta.url), new URL(`../dist/${ASSETS}`, import.meta.url), { recursive: true })
