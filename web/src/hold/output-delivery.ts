// Output on its way to the terminal: in order, one piece at a time, never more than a few megabytes. A
// browser cannot stop reading a WebSocket, so a page that draws slower than a session prints is moved on with a new
// screen instead of being given everything.

import type { OutputKind, OutputListener, Size } from './api'

const BACKLOG_MAX_BYTES = 4 << 20

interface Piece {
  bytes: Uint8Array
  kind: OutputKind
  size: Size
  offset: number
  keepScrollback: boolean
}

export class OutputDelivery {
  /** Offset of the next byte wanted; null: a screen comes first. */
  next: number | null = null
  private queue: Piece[] = []
  private backlog = 0
  private dropping = false
  private owed = false // a new screen, as soon as there is somebody to draw it
  private busy = false
  private readonly listeners = new Set<OutputListener>()

  /** `overflowed`: something was dropped, and there is room again: a resync has to come. */
  constructor(private readonly overflowed: () => void) {}

  listen(listener: OutputListener): () => void {
    this.listeners.add(listener)
    void this.deliver()
    return () => this.listeners.delete(listener)
  }

  live(offset: number, bytes: Uint8Array, size: Size): void {
    if (this.dropping) return
    if (this.backlog + bytes.length > BACKLOG_MAX_BYTES) {
      this.drop()
      this.owed = true
      void this.deliver()
      return
    }
    this.next = offset + bytes.length
    this.put({ bytes, kind: 'live', size, offset, keepScrollback: true })
  }

  /** The whole view: takes the place of all that is not delivered yet. */
  resync(offset: number, bytes: Uint8Array, size: Size, keepScrollback: boolean): void {
    this.queue = []
    this.backlog = 0
    this.dropping = this.owed = false
    this.next = offset
    this.put({ bytes, kind: 'resync', size, offset, keepScrollback })
  }

  /** Nothing but a resync is delivered from here on. */
  drop(): void {
    this.queue = []
    this.backlog = 0
    this.dropping = true
    this.next = null
  }

  private put(piece: Piece): void {
    this.queue.push(piece)
    this.backlog += piece.bytes.length
    void this.deliver()
  }

  private async deliver(): Promise<void> {
    if (this.busy) return
    this.busy = true
    try {
      while (this.queue.length && this.listeners.size) {
        const piece = this.queue.shift() as Piece
        this.backlog -= piece.bytes.length
        for (const listener of [...this.listeners]) {
          const more = { offset: piece.offset, keepScrollback: piece.keepScrollback }
          try {
            // Awaited only if there is something to wait for: an echo is drawn in the same turn it came in.
            const drawn = listener(piece.bytes, piece.kind, piece.size, more)
            if (drawn) await drawn
          } catch (error) {
            console.error('output', error)
          }
        }
      }
    } finally {
      this.busy = false
    }
    // Asked for now and not before: a screen that is not drawn is as much work for the host as one that is.
    if (this.owed && this.listeners.size) {
      this.owed = false
      this.overflowed()
    }
  }
}
