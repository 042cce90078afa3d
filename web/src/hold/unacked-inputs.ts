// Inputs that the host has not acknowledged: numbered, in order, sent again after a loss under the same numbers. The
// number makes a repeat harmless. Old input was meant for another prompt: it is reported and never sent again, and so is
// input of which it cannot be known whether the host accepted it.

import { signal } from '@preact/signals-core'
import type { Accepted } from './api'
import { HoldError } from '../wire/errors'
import type { RequestFields } from '../wire/messages'
import { between, type Moment } from './task-queue'

export type InputTag = 'input' | 'submit'
/** Without session and number, which are added when it is sent. */
type Content<T extends InputTag> = Omit<RequestFields<T>, 'session' | 'seq'>

export interface Offer {
  readonly seq: number
  readonly tag: InputTag
  readonly content: Content<InputTag>
  readonly size: number
  readonly typedAt: Moment
  readonly once: boolean // a secret: never sent on another connection than the one it was typed for
  sentAt: number | null
  request: number // of the connection it was last sent on
  readonly settle: ((outcome: Accepted | HoldError) => void) | null
}

export interface Back {
  again: Offer[] // to be sent, in this order
  unknown: Offer[] // may or may not have been typed
  late: Offer[] // never sent, and not to be sent now
}

// A key that arrives much later, at another prompt, would do harm, also one that was written into a dead connection. As
// long as the terminal client tries to come back.
export const KEEP_UNSENT_S = 30
const WINDOW_BYTES = 256 << 10 // typed and not taken; beyond it input is refused

const inputUnknown = () =>
  new HoldError(
    'input_unknown',
    'the connection was lost before the host acknowledged the input',
    'check the screen before you type it again',
  )

export class UnackedInputs {
  readonly pending = signal(0)
  private last = 0
  private highestTaken = 0
  private kept: Offer[] = []

  get hasRoom(): boolean {
    return this.pending.value < WINDOW_BYTES
  }

  add<T extends InputTag>(
    tag: T,
    content: Content<T>,
    size: number,
    now: Moment,
    settle: Offer['settle'],
    once = false,
  ): Offer {
    const offer: Offer = {
      seq: ++this.last,
      tag,
      content,
      size,
      typedAt: now,
      once,
      sentAt: null,
      request: 0,
      settle,
    }
    this.kept.push(offer)
    this.count()
    return offer
  }

  /** The host has this one and all before it. Returns the input itself. */
  taken(seq: number, offset = 0, repeated = false): Offer | null {
    let found: Offer | null = null
    while (this.kept[0] && this.kept[0].seq <= seq) {
      const offer = this.kept.shift() as Offer
      offer.settle?.({ seq: offer.seq, offset, repeated })
      found = offer
    }
    this.highestTaken = Math.max(this.highestTaken, seq)
    this.count()
    return found
  }

  /** This one would be refused again: drop it, and only it. */
  refused(request: number, error: HoldError): Offer | null {
    const found = this.kept.find((offer) => offer.sentAt !== null && offer.request === request)
    if (!found) return null
    this.drop([found], error)
    return found
  }

  /**
   * Attached again. `taken` is the last number the host remembers of us; `moved`: the session is in another incarnation,
   * which may not know what the one before it took.
   */
  back(taken: number, moved: boolean, now: Moment): Back {
    const forgotten = taken < this.highestTaken
    if (!forgotten) this.taken(taken)
    const over = (offer: Offer) => offer.once || between(offer.typedAt, now) > KEEP_UNSENT_S
    const unknown = this.kept.filter((offer) => offer.sentAt !== null && (moved || forgotten || over(offer)))
    const late = this.kept.filter((offer) => offer.sentAt === null && over(offer))
    this.drop(unknown, inputUnknown())
    this.drop(late, new HoldError('host_lost', 'the host was unreachable: this was not typed'))
    return { again: [...this.kept], unknown, late }
  }

  /** There is no reconnecting: what was sent is unknown, the rest was not typed. */
  giveUp(error: HoldError): Back {
    const unknown = this.kept.filter((offer) => offer.sentAt !== null)
    const late = this.kept.filter((offer) => offer.sentAt === null)
    this.drop(unknown, inputUnknown())
    this.drop(late, error)
    return { again: [], unknown, late }
  }

  private drop(offers: Offer[], error: HoldError): void {
    if (!offers.length) return
    const gone = new Set(offers)
    this.kept = this.kept.filter((offer) => !gone.has(offer))
    for (const offer of offers) offer.settle?.(error)
    this.count()
  }

  private count(): void {
    this.pending.value = this.kept.reduce((sum, offer) => sum + offer.size, 0)
  }
}
