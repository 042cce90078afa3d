// How far something is that takes a while: a bar that fills where it is known of how much, and the same in words.

import { useHold } from '../context'
import { now } from '../parts/clock'
import { age } from '../text/durations'
import { type HowFar, howFar } from '../text/progress'
import type { SessionController } from './session-controller'

/** Of this session; null where nothing is under way, or is over before anybody could read it. */
export function useHowFar({ handle }: SessionController): HowFar | null {
  const id = handle.info.value?.id
  const card = useHold().sessions.value.find(
    ({ machine, info }) => machine === handle.machine && info.id === id,
  )
  return howFar(card?.progress, now.value)
}

/** `since`: when it was asked for, seconds since 1970. */
export function ProgressBar({ label, far, since }: { label: string; far: HowFar | null; since: number }) {
  const said = [far?.phase, far?.amount].filter(Boolean).join(', ')
  return (
    <span class="progress" data-testid="progress" data-part={far?.part ?? ''}>
      {label}
      {said ? `: ${said}` : '…'} · {age(now.value - since)}{' '}
      {far && far.part !== null ? (
        <progress aria-label={label} value={far.part} max={1} />
      ) : (
        <progress aria-label={label} />
      )}
    </span>
  )
}
