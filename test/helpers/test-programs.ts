import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url))
/** Inside the repository, where the programs find their packages. */
const DIRECTORY = join(REPOSITORY, '.test-programs')
/** The compiler leaves what is no TypeScript where it is. */
const ASSETS = 'src/http/console/assets'

export interface TestPrograms {
  readonly directory: string
  remove(): Promise<void>
}

/**
 * The service and the children of tests as plain JavaScript. Tests start some two hundred of them, and each would spend
 * more on compiling itself than on its work.
 */
export async function compileTestPrograms(): Promise<TestPrograms> {
  await mkdir(DIRECTORY, { recursive: true })
  const directory = await mkdtemp(join(DIRECTORY, 'run-'))
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true })
  try {
    // Some children run as another user.
    await chmod(directory, 0o755)
    const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
    const args = [compiler, '-p', 'tsconfig.programs.json', '--outDir', directory]
    await promisify(execFile)(process.execPath, args, { cwd: REPOSITORY })
    await cp(join(REPOSITORY, ASSETS), join(directory, ASSETS), { recursive: true })
    return { directory, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
