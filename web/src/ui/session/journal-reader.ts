// Keeps the timeline of one session up to date: a summary first, once, and the journal that it sums up in its place as soon as
// that is read; from there on what is added, read when something happened and not by the clock.

import type { Signal } from '@preact/signals'
import type { Handoff, SessionHandle } from '../../hold/api'
import { added, EMPTY, seeded, type TimelineModel } from './timeline-model'

const SOON_MS = 250 // several things happen at once; one read covers all of them
const PRINTED_MS = 1000 // output may come from a command so short that no state changed
const FAILED_MS = 3000
const PIECES_MAX = 8 // of one read; then others have their turn
const PAST_PIECES_MAX = 64 // of what was before this page: a host sums up 20,000 records, some 4 MB

/** Gets what happened since this actor last looked; with `again`, since the connection was lost. */
type Returned = (handoff: Handoff, again: boolean) => void

export class JournalReader {
  private timer = 0
  private due = Infinity // when that fires
  private trial = 0 // the timer of a beginning that failed
  private reading = false
  private again = false
  private begun = false
  private open = false
  private closed = false
  private left = { at: 0, through: 0 } // when the connection was lost, in seconds since 1970; and what had been read by then
  private last: Promise<void> = Promise.resolve()

  constructor(
    private readonly handle: SessionHandle,
    private readonly into: Signal<TimelineModel>,
  ) {}

  start(returned: Returned): () => void {
    const undo = [
      this.handle.link.subscribe((link) => {
        const open = link.at === 'online' || link.at === 'ended'
        if (this.open && !open) this.left = { at: Date.now() / 1000, through: this.into.value.through }
        if (open && !this.open) this.beginNext(returned)
        this.open = open
      }),
      this.handle.info.subscribe(() => this.soon()),
      this.handle.operators.subscribe(() => this.soon()),
      this.handle.turn.subscribe(() => this.soon()),
    ]
    return () => {
      this.closed = true
      clearTimeout(this.timer)
      clearTimeout(this.trial)
      for (const each of undo) each()
    }
  }

  /** Something happened that the journal records. */
  soon(): void {
    this.readWithin(SOON_MS)
  }

  /** The session printed something, which may be the whole of a command. */
  printed(): void {
    this.readWithin(PRINTED_MS)
  }

  /** What is due before stays so: a session that never falls silent is read all the same. */
  private readWithin(ms: number): void {
    const due = Date.now() + ms
    if (!this.begun || this.closed || due >= this.due) return
    clearTimeout(this.timer)
    this.due = due
    this.timer = window.setTimeout(() => {
      this.due = Infinity
      void this.read()
    }, ms)
  }

  /** One after the other: requests made while the connection is lost wait until it is back. */
  private beginNext(returned: Returned): void {
    clearTimeout(this.trial)
    this.last = this.last.then(() => this.begin(returned))
  }

  private async begin(returned: Returned): Promise<void> {
    if (this.closed) return
    // A host sums up what lives; what has ended is read from its journal.
    const ended = this.handle.link.value.at === 'ended'
    try {
      if (ended) this.begun = true
      else if (this.begun) await this.sinceLeft(returned)
      else await this.first(returned)
    } catch {
      // The panels stay as they are meanwhile; the terminal does not need them.
      this.trial = window.setTimeout(() => {
        if (this.open && !this.closed) this.beginNext(returned)
      }, FAILED_MS)
    }
    if (this.begun) await this.read(ended ? PAST_PIECES_MAX : PIECES_MAX)
  }

  private async first(returned: Returned): Promise<void> {
    // Asked in this order: the second question is about everything, and must not count as a look.
    const missed = await this.handle.catchUp()
    if (this.closed) return
    returned(missed, false)
    const sum = await this.handle.catchUp(0)
    this.into.value = seeded(sum)
    this.begun = true
    void this.readPast(sum.since_seq).catch(() => undefined) // then the summary stays
  }

  /** A summary leaves out most of what is no command: the journal itself takes its place, in one step. */
  private async readPast(since: number): Promise<void> {
    let past: TimelineModel = { ...EMPTY, through: since, leftOut: since }
    for (let piece = 0; piece < PAST_PIECES_MAX && !this.closed; piece += 1) {
      const found = await this.handle.journal(past.through + 1)
      past = added(past, found.entries, found.names)
      if (past.through >= this.into.value.through) this.into.value = past
      else if (found.entries.length > 0) continue
      return
    }
  }

  /** By what this page had read, not by when its host noticed that it was away: that is later, or not at all. */
  private async sinceLeft(returned: Returned): Promise<void> {
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
      if (this.open) this.readWithin(FAILED_MS) // otherwise when the connection is back
    } finally {
      this.reading = false
      if (this.again) {
        this.again = false
        this.soon()
      }
    }
  }
}
