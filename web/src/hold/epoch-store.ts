// The highest epoch of every session this device has seen, in memory for speed and in the store permanently.

import { EpochFloor } from '../wire/epoch-floor'
import type { Store } from './store'

export class EpochStore {
  constructor(
    private readonly store: Store,
    private readonly known: Map<string, number>,
  ) {}

  floor(session: string): EpochFloor {
    return new EpochFloor(this.known.get(session) ?? 0)
  }

  /** The host itself vouched for it: nothing lower is believed again. */
  saw(session: string, epoch: number): void {
    if ((this.known.get(session) ?? 0) >= epoch) return
    this.known.set(session, epoch)
    this.store.keepEpoch(session, epoch).catch(() => undefined) // then only this page remembers
  }
}
