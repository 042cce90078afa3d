// How far away a host is: whether its echo comes too late to type by. The same as src/holdfast/sdk/round_trip.py:
// decided by the shortest of the latest round trips. Durations come in, in seconds; no clock.

export const SLOW_S = 0.03 // above this a late echo is felt
export const FAST_S = 0.02 // below this it is not; in between all stays as it is
export const SAMPLES = 3 // round trips that must agree

export class RoundTrip {
  private latest: number[] = []
  slow = false

  took(seconds: number): void {
    this.latest = [...this.latest, seconds].slice(-SAMPLES)
    const shortest = Math.min(...this.latest)
    if (shortest < FAST_S) this.slow = false
    else if (this.latest.length === SAMPLES && shortest > SLOW_S) this.slow = true
  }

  /** Whether it should be asked again now: the last one was slow and that is not settled. */
  get doubtful(): boolean {
    return !this.slow && (this.latest.at(-1) ?? 0) > SLOW_S
  }

  /** Another connection. */
  forget(): void {
    this.latest = []
    this.slow = false
  }
}
