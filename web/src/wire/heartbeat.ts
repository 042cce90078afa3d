// Detects records held back between the two ends: each side regularly sends a sign of life and how many records it has
// received. No clock: `now` is an argument, in seconds of a monotonic clock.

import { broken } from './errors'
import { CHANNEL_BEAT_S, CHANNEL_PATIENCE_S } from './generated/constants'

// Records sent within this part of the patience are judged together, by the first.
const BATCHES = 8

export class Heartbeat {
  private receivedAt: number
  private beatAt: number
  private sentCount = 0
  private confirmedCount = 0
  private readonly waiting: { last: number; since: number }[] = []

  constructor(
    now: number,
    speaksFirst: boolean,
    private readonly beatS = CHANNEL_BEAT_S,
    private readonly patienceS = CHANNEL_PATIENCE_S,
  ) {
    this.receivedAt = now
    this.beatAt = speaksFirst ? now : now + beatS
  }

  sent(now: number): void {
    this.sentCount++
    const latest = this.waiting.at(-1)
    if (latest && now - latest.since < this.patienceS / BATCHES) latest.last = this.sentCount
    else this.waiting.push({ last: this.sentCount, since: now })
  }

  received(now: number): void {
    this.receivedAt = now
  }

  /** The peer has received the first `count` of ours. */
  confirmed(count: number): void {
    if (count < this.confirmedCount || count > this.sentCount) {
      throw broken(
        `the peer confirmed ${count} records; ${this.sentCount} were sent, ${this.confirmedCount} confirmed before`,
      )
    }
    this.confirmedCount = count
    while (this.waiting[0] && this.waiting[0].last <= count) this.waiting.shift()
  }

  /** Whether a sign of life is due; asking counts as sending it. */
  beatDue(now: number): boolean {
    if (now < this.beatAt) return false
    this.beatAt = now + this.beatS
    return true
  }

  check(now: number): void {
    if (now >= this.receivedAt + this.patienceS) {
      throw broken(`nothing was received for ${(now - this.receivedAt).toFixed(1)} s`)
    }
    const first = this.waiting[0]
    if (first && now >= first.since + this.patienceS) {
      throw broken(
        `records after number ${this.confirmedCount} were not confirmed for ${(now - first.since).toFixed(1)} s`,
      )
    }
  }

  /** When `beatDue` or `check` will next have something to do. */
  wakeAt(): number {
    const unconfirmed = this.waiting[0]?.since ?? this.receivedAt
    return Math.min(this.beatAt, Math.min(this.receivedAt, unconfirmed) + this.patienceS)
  }
}
