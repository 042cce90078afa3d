// The page's clock: one signal for every age that is shown, so that all of them turn over together and
// nothing else has a timer for it.

import { signal } from '@preact/signals'

const TICK_MS = 1000

export const now = signal(Date.now() / 1000)

export function startClock(): void {
  const tick = (): void => {
    // Nobody reads a hidden page; the browser would throttle it anyway.
    if (!document.hidden) now.value = Date.now() / 1000
  }
  setInterval(tick, TICK_MS)
  document.addEventListener('visibilitychange', tick)
}
