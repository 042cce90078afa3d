// How far away a host is: whether its echo comes too late to type by. The same as src/holdfast/sdk/prediction/round_trip.py:
// decided by the shortest of the latest round trips. Durations come in, in seconds; no clock.

export const SLOW_S = 0.03 // above this a late echo is felt
export const FAST_S = 0.02 // below this it is not; in between all stays as it is
export const SAMPLES = 3 // round trips that must agree

// In a page an answer may wait for a frame that is being drawn, and that is no part of the way.
export const FRAME_S = 0.02

export class RoundTrip {
  private latest: number[] = []
  slow = false

  /** `extra`: what every sample contains besides the network's time. */
  constructor(private readonly extra = 0) {}

  took(seconds: number): void {
    this.latest = [...this.latest, seconds].slice(-SAMPLES)
    const shortest = Math.min(...this.latest)
    if (shortest < FAST_S + this.extra) this.slow = false
    else if (this.latest.length === SAMPLES && shortest > SLOW_S + this.extra) this.slow = true
  }

  /** Another connection. */
  forget(): void {
    this.latest = []
    this.slow = false
  }
}
