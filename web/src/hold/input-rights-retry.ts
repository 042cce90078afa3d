// For a view that was reduced to watching and wants to type: checks from time to time whether it may type again, because a
// host does not notify a watcher of new rights. It retries when the reported rights change, never against a refusal.

import type { ReadonlySignal } from '@preact/signals-core'

const LOOK_S = 5

export class InputRightsRetry {
  private timer: ReturnType<typeof setInterval> | undefined
  private unsubscribe: () => void = () => undefined

  /** `look`: asks the host, which changes `rights`. `regained` is called once for each `start`, if ever. */
  constructor(
    private readonly rights: ReadonlySignal<readonly string[] | null>,
    private readonly look: () => Promise<void>,
    private readonly regained: () => void,
  ) {}

  /** Typing was just refused. */
  start(): void {
    this.stop()
    let lacked = false // what is known now may be older than the refusal
    this.unsubscribe = this.rights.subscribe((rights) => {
      const may = rights?.includes('input') ?? false
      if (!may) lacked ||= rights !== null
      else if (lacked) queueMicrotask(() => this.back())
    })
    this.timer = setInterval(() => void this.look(), LOOK_S * 1000)
    void this.look()
  }

  stop(): void {
    clearInterval(this.timer)
    this.timer = undefined
    this.unsubscribe()
  }

  private back(): void {
    if (this.timer === undefined) return
    this.stop()
    this.regained()
  }
}
