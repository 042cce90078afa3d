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
  if (event === 'up' || event === 'leave') return { press: IDLE, fire: false }
  if (event === 'down') {
    // A key that is held down repeats; only the first counts.
    return { press: press.phase === 'idle' ? { phase: 'pressing', since: now } : press, fire: false }
  }
  if (press.phase === 'pressing' && now - press.since >= HOLD_MS) {
    return { press: { phase: 'fired', since: press.since }, fire: true }
  }
  return { press, fire: false }
}

/** From 0 to 1. */
export function progress(press: Press, now: number): number {
  if (press.phase === 'idle') return 0
  if (press.phase === 'fired') return 1
  return Math.min(1, Math.max(0, (now - press.since) / HOLD_MS))
}
