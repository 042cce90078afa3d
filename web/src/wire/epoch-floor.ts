// The highest epoch of a session that its host ever vouched for. Anything below it is refused permanently, so a floor is
// stored where it outlives the page.

import { HoldError } from './errors'

export class EpochFloor {
  constructor(public highest = 0) {}

  check(epoch: number): void {
    if (epoch < this.highest) {
      throw new HoldError(
        'fenced',
        `epoch ${epoch} of this session is over: epoch ${this.highest} was seen`,
        'the session runs on another host: look it up again',
      )
    }
  }

  /** Take note of an epoch that the host itself vouched for. True when the session has moved on since the last one. */
  rise(epoch: number): boolean {
    this.check(epoch)
    const moved = this.highest > 0 && this.highest < epoch
    this.highest = epoch
    return moved
  }
}
