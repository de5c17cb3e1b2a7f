import type { Channel, Viewpoint } from '../domain/catalogue.ts'
import type { Problem } from '../domain/errors.ts'
import type { JsonObject } from './portal-file.ts'

/** An AsyncAPI 2.x document, read, checked and made self-contained. */
export interface AsyncApiDocument {
  /** The path that was read. */
  readonly file: string
  /** `2.0.0` to `2.6.0`. */
  readonly version: string
  /** `info.title` */
  readonly title: string
  readonly viewpoint: Viewpoint
  /** In the client's view. */
  readonly channels: readonly Channel[]
  /** With what it refers to in other files; references inside it are kept. */
  readonly document: JsonObject
  readonly warnings: readonly Problem[]
}

export interface AsyncApiOptions {
  /** Overrides what the document says of itself. */
  readonly viewpoint?: Viewpoint
}

export async function readAsyncApiDocument(_path: string, _options: AsyncApiOptions): Promise<AsyncApiDocument> {
  throw new Error('not built yet')
}
