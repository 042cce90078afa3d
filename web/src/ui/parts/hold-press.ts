// Press and hold to confirm: what takes something from somebody must not happen by a slip of the hand
// or a stray key. A pure machine; the button brings the clock and the events.

export const HOLD_MS = 1000

export interface Press {
  readonly phase: 'idle' | 'pressing' | 'fired'
  readonly since: number
}

export const IDLE: Press = { phase: 'idle', since: 0 }

export type PressEvent = 'down' | 'up' | 'leave' | 'tick'

/** One step. It fires once per press: the hand must be lifted before it can fire again. */
export function step(press: Press, event: PressEvent, now: number): { press: Press; fire: boolean } {
  // A busy page looks late: what counts is how long it was held, and not how often somebody looked meanwhile.
  if (event === 'up') return { press: IDLE, fire: isDue(press, now) }
  if (event === 'leave') return { press: IDLE, fire: false }
  if (event === 'down') {
    // A key that is held down repeats; only the first counts.
    return { press: press.phase === 'idle' ? { phase: 'pressing', since: now } : press, fire: false }
  }
  if (!isDue(press, now)) return { press, fire: false }
  return { press: { phase: 'fired', since: press.since }, fire: true }
}

function isDue(press: Press, now: number): boolean {
  return press.phase === 'pressing' && now - press.since >= HOLD_MS
}

interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

const SLIP_PX = 12 // a finger that presses is not still

/** Whether a pointer went off what it pressed. By where that was then: what the page moves away has not been let go. */
export function isOff(box: Box, x: number, y: number): boolean {
  return (
    x < box.left - SLIP_PX || x > box.right + SLIP_PX || y < box.top - SLIP_PX || y > box.bottom + SLIP_PX
  )
}

/** From 0 to 1. */
export function progress(press: Press, now: number): number {
  if (press.phase === 'idle') return 0
  if (press.phase === 'fired') return 1
  return Math.min(1, Math.max(0, (now - press.since) / HOLD_MS))
}
