import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Trusted certificates as files, for a library that takes no texts: one for each content, in a directory that only this
 * user can read and that goes with the process. Temporary directories are swept by others too, so what is gone is
 * written again.
 */
export class TrustFiles {
  readonly #directories: string[] = []
  readonly #paths = new Map<string, string>()
  readonly #remove = (): void => {
    for (const directory of this.#directories.splice(0)) rmSync(directory, { recursive: true, force: true })
  }

  /** The path of a file with these PEM certificates. Throws what the file system does. */
  pathOf(pem: string): string {
    const name = `${createHash('sha256').update(pem).digest('hex')}.pem`
    const known = this.#paths.get(name)
    if (known !== undefined && existsSync(known)) return known
    const path = join(this.#directory(), name)
    writeFileSync(path, pem, { mode: 0o600, flag: 'wx' })
    this.#paths.set(name, path)
    return path
  }

  close(): void {
    process.off('exit', this.#remove)
    this.#paths.clear()
    this.#remove()
  }

  #directory(): string {
    const last = this.#directories.at(-1)
    if (last !== undefined && existsSync(last)) return last
    const directory = mkdtempSync(join(tmpdir(), 'keymesh-trust-'))
    this.#directories.push(directory)
    process.off('exit', this.#remove).on('exit', this.#remove)
    return directory
  }
}
