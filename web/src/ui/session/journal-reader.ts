// Keeps the chronicle of one session up to date: a summary first, once, then the journal from there on, read
// when something happened and not by the clock.

import type { Signal } from '@preact/signals'
import type { Handoff, SessionHandle } from '../../hold/api'
import { added, seeded, type Chronicle } from './chronicle'

const SOON_MS = 250 // several things happen at once; one read tells of all of them
const PIECES_MAX = 8 // of one read; then others have their turn
const ENDED_PIECES_MAX = 64 // of a session that has ended there is no next

export class JournalReader {
  private timer = 0
  private reading = false
  private again = false
  private begun = false
  private closed = false
  private left = { at: 0, through: 0 } // when the way was lost, in seconds since 1970; and what had been read by then
  private last: Promise<void> = Promise.resolve()

  constructor(
    private readonly handle: SessionHandle,
    private readonly into: Signal<Chronicle>,
  ) {}

  /** `returned` gets what happened since this actor last looked; `again`: since the way here was lost. */
  start(returned: (handoff: Handoff, again: boolean) => void): () => void {
    let online = false
    const undo = [
      this.handle.link.subscribe((link) => {
        const open = link.at === 'online' || link.at === 'ended'
        if (online && !open) this.left = { at: Date.now() / 1000, through: this.into.value.through }
        // One after the other: what is asked while the way is lost again waits until it is back.
        if (open && !online) this.last = this.last.then(() => this.begin(returned))
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

  private async begin(returned: (handoff: Handoff, again: boolean) => void): Promise<void> {
    if (this.closed) return
    // A host sums up what lives; what has ended is read from its journal.
    const ended = this.handle.link.value.at === 'ended'
    try {
      if (ended) this.begun = true
      else if (this.begun) await this.sinceLeft(returned)
      else await this.first(returned)
    } catch {
      // The panels stay as they are until the next time the way is open; the terminal does not need them.
    }
    if (this.begun) await this.read(ended ? ENDED_PIECES_MAX : PIECES_MAX)
  }

  private async first(returned: (handoff: Handoff, again: boolean) => void): Promise<void> {
    // Asked in this order: the second question is about everything, and must not count as a look.
    const missed = await this.handle.catchUp()
    if (this.closed) return
    returned(missed, false)
    this.into.value = seeded(await this.handle.catchUp(0))
    this.begun = true
  }

  /** By what this page had read, not by when its host noticed that it was away: that is later, or not at all. */
  private async sinceLeft(returned: (handoff: Handoff, again: boolean) => void): Promise<void> {
    const { at, through } = this.left
    const missed = await this.handle.catchUp(through + 1)
    if (!this.closed) returned({ ...missed, since_at: at }, true)
  }

  private async read(pieces = PIECES_MAX): Promise<void> {
    if (this.reading) {
      this.again = true
      return
    }
    this.reading = true
    try {
      let more = true
      for (let piece = 0; more && piece < pieces && !this.closed; piece += 1) {
        const found = await this.handle.journal(this.into.value.through + 1)
        more = found.more && found.entries.length > 0
        if (found.entries.length > 0) this.into.value = added(this.into.value, found.entries, found.names)
      }
      if (more && pieces === PIECES_MAX) this.again = true
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
