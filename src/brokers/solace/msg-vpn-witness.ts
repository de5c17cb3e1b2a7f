import { codeOf, KeymeshError } from '../../domain/errors.ts'
import type { SempSender } from './semp-client.ts'
import { readOne, type SempRead } from './semp-reads.ts'
import { MSG_VPN } from './solace-answers.ts'
import { quoteName } from './solace-mapping.ts'

export interface MsgVpn {
  readonly enabled: boolean
  readonly authenticationBasicEnabled: boolean
  readonly authenticationBasicType: string
}

/** Code 6 may be about the object or about its message VPN; this one knows when the message VPN was last seen. */
export class MsgVpnWitness {
  readonly #client: SempSender
  readonly #name: string
  readonly #path: string
  readonly #freshMs: number
  #readAtMs = Number.NEGATIVE_INFINITY

  constructor(client: SempSender, name: string, path: string, freshMs: number) {
    this.#client = client
    this.#name = name
    this.#path = path
    this.#freshMs = freshMs
  }

  /** Throws unless a read that is fresh enough, or a new one, saw the message VPN. */
  async vouch(signal: AbortSignal | undefined): Promise<void> {
    if (performance.now() - this.#readAtMs > this.#freshMs) await this.read(signal)
  }

  /** Throws `MSG_VPN_NOT_FOUND` when the broker has no such message VPN. */
  async read(signal: AbortSignal | undefined): Promise<MsgVpn> {
    const read: SempRead<MsgVpn> = {
      kind: 'msgVpn',
      path: this.#path,
      select: ['enabled', 'authenticationBasicEnabled', 'authenticationBasicType'],
      describe: () => `read ${this.describe()}`,
      schema: MSG_VPN,
    }
    const startedMs = performance.now()
    try {
      const msgVpn = await readOne(this.#client, read, signal)
      this.#readAtMs = startedMs
      return msgVpn
    } catch (error) {
      if (codeOf(error) !== 'NOT_FOUND') throw error
      this.#readAtMs = Number.NEGATIVE_INFINITY
      throw new KeymeshError({
        code: 'MSG_VPN_NOT_FOUND',
        fate: 'stop',
        message: `The broker at ${this.#client.address.display} has no ${this.describe()}.`,
        hint: 'Nothing was created or deleted. Correct the management settings of the broker, or restore the message VPN.',
      })
    }
  }

  describe(): string {
    return `message VPN ${quoteName(this.#name)}`
  }
}
