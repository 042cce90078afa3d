// Keeps the chronicle of one session up to date: a summary first, then the journal from there on, read
// when something happened and not by the clock.

import type { Signal } from '@preact/signals'
import type { Handoff, SessionHandle } from '../../hold/api'
import { added, seeded, type Chronicle } from './chronicle'

const SOON_MS = 250 // several things happen at once; one read tells of all of them
const PIECES_MAX = 8 // of one read; the rest comes with the next
const ENDED_PIECES_MAX = 64 // of a session that has ended there is no next

export class JournalReader {
  private timer = 0
  private reading = false
  private again = false
  private begun = false
  private closed = false

  constructor(
    private readonly handle: SessionHandle,
    private readonly into: Signal<Chronicle>,
  ) {}

  /** `returned` gets what happened since this actor last looked. */
  start(returned: (handoff: Handoff) => void): () => void {
    let online = false
    const undo = [
      this.handle.link.subscribe((link) => {
        const open = link.at === 'online' || link.at === 'ended'
        if (open && !online) void this.begin(returned)
        online = open
      }),
      this.handle.info.subscribe(() => this.soon()),
      this.handle.operators.subscribe(() => this.soon()),
      this.handle.turn.subscribe(() => this.soon()),
    ]
    return () => {
      this.closed = true
      clearTimeout(this.timer)
      for (const each of undo) each()
    }
  }

  soon(): void {
    if (!this.begun || this.closed) return
    clearTimeout(this.timer)
    this.timer = window.setTimeout(() => void this.read(), SOON_MS)
  }

  private async begin(returned: (handoff: Handoff) => void): Promise<void> {
    if (!this.begun && this.handle.link.value.at === 'ended') {
      // A host sums up what lives; what has ended is read from its journal.
      this.begun = true
      return this.read(ENDED_PIECES_MAX)
    }
    try {
      // Asked in this order: the second question is about everything, and must not count as a look.
      if (!this.begun) returned(await this.handle.catchUp())
      const all = await this.handle.catchUp(0)
      if (this.closed) return
      this.into.value = seeded(all)
      this.begun = true
      void this.read()
    } catch {
      // The panels stay empty until the next time the way is open; the terminal does not need them.
    }
  }

  private async read(pieces = PIECES_MAX): Promise<void> {
    if (this.reading) {
      this.again = true
      return
    }
    this.reading = true
    try {
      for (let piece = 0; piece < pieces && !this.closed; piece += 1) {
        const { entries, more, names } = await this.handle.journal(this.into.value.through + 1)
        if (entries.length > 0) this.into.value = added(this.into.value, entries, names)
        if (!more) break
      }
    } catch {
      // Offline, most likely; it is read when the way is open again.
    } finally {
      this.reading = false
      if (this.again) {
        this.again = false
        this.soon()
      }
    }
  }
}
