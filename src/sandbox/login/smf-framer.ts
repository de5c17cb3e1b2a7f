import { SMF_HEADER_LENGTH, smfMessageLength } from './smf-message.ts'

/** Cuts a byte stream into SMF messages. Holds no more than one message, and none that is larger than allowed. */
export class SmfFramer {
  #buffer = Buffer.alloc(SMF_HEADER_LENGTH)
  #filled = 0

  /** The messages that are whole now. Throws `SmfSyntaxError`; the stream is of no use then. */
  push(chunk: Buffer, maxMessageLength: number): readonly Buffer[] {
    const messages: Buffer[] = []
    let offset = 0
    while (offset < chunk.length) {
      const copied = chunk.copy(this.#buffer, this.#filled, offset)
      offset += copied
      this.#filled += copied
      if (this.#filled < this.#buffer.length) break
      if (this.#buffer.length === SMF_HEADER_LENGTH) {
        const length = smfMessageLength(this.#buffer, maxMessageLength)
        if (length > SMF_HEADER_LENGTH) {
          this.#buffer = Buffer.concat([this.#buffer], length)
          continue
        }
      }
      messages.push(this.#buffer)
      this.#buffer = Buffer.alloc(SMF_HEADER_LENGTH)
      this.#filled = 0
    }
    return messages
  }
}
