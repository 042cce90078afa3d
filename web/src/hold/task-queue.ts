// Runs asynchronous work in order, one piece after the other. With an empty queue, work starts in the same turn of the
// event loop: a key press is sent before the browser does anything else.

export class TaskQueue {
  private last: Promise<void> = Promise.resolve()

  /** `failed` receives what a piece of work threw; the next one runs anyway. */
  constructor(private readonly failed: (error: unknown) => void) {}

  run(work: () => Promise<void> | void): void {
    this.last = this.last.then(work).catch(this.failed)
  }
}

/** Seconds of a clock that never goes back. */
export function now(): number {
  return performance.now() / 1000
}

/** By both clocks of a page: the first may stop while the machine sleeps, the second may be set. In seconds. */
export interface Moment {
  readonly steady: number
  readonly wall: number
}

export function moment(): Moment {
  return { steady: now(), wall: Date.now() / 1000 }
}

/** How long it may have been, in seconds. */
export function between(then: Moment, at: Moment): number {
  return Math.max(at.steady - then.steady, at.wall - then.wall)
}
