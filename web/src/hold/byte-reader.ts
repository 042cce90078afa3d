// Bytes of a stream by lines and by number, for the readers of HTTP and of WebSocket frames.

import { HoldError } from '../wire/errors'
import type { ByteStream } from './port-forward'

const NOTHING = new Uint8Array(0)

export const spoilt = (what: string) => new HoldError('connection_reset', `the program at the port ${what}`)

export class ByteReader {
  private held: Uint8Array = NOTHING

  constructor(private readonly stream: ByteStream) {}

  /** What there is, at most so much; null: no more comes. */
  async some(most: number): Promise<Uint8Array | null> {
    if (this.held.length === 0 && !(await this.more())) return null
    const piece = this.held.subarray(0, most)
    this.held = this.held.subarray(piece.length)
    return piece
  }

  async exactly(size: number): Promise<Uint8Array> {
    while (this.held.length < size)
      if (!(await this.more())) throw spoilt('ended in the middle of what it said')
    const piece = this.held.slice(0, size)
    this.held = this.held.subarray(size)
    return piece
  }

  /** Up to the next line end, without it. `most` bounds what is held for it. */
  async line(most: number): Promise<string> {
    for (;;) {
      const at = this.held.indexOf(10)
      if (at >= 0) {
        const line = this.held.subarray(0, at)
        this.held = this.held.subarray(at + 1)
        // One character per byte, whatever they are: header values may be in any encoding.
        let text = ''
        for (const byte of line) text += String.fromCharCode(byte)
        return text.endsWith('\r') ? text.slice(0, -1) : text
      }
      if (this.held.length > most) throw spoilt('said a line that is too long')
      if (!(await this.more())) throw spoilt('ended before it answered')
    }
  }

  private async more(): Promise<boolean> {
    const piece = await this.stream.read()
    if (piece === null) return false
    if (this.held.length === 0) this.held = piece
    else {
      const both = new Uint8Array(this.held.length + piece.length)
      both.set(this.held)
      both.set(piece, this.held.length)
      this.held = both
    }
    return true
  }
}
