// A move to another host, in words: which of its phases it is in, who runs the session now. Pure.

import type { SessionInfo } from '../../hold/api'

type Migration = NonNullable<SessionInfo['migration']>

export interface Step {
  readonly word: string
  readonly is: 'done' | 'now' | 'to come'
}

const PHASES = ['snapshot', 'transfer', 'restore', 'replay', 'cutover', 'complete'] as const
const WORDS: Readonly<Record<(typeof PHASES)[number], string>> = {
  snapshot: 'Snapshot',
  transfer: 'Copying',
  restore: 'Starting there',
  replay: 'Handing keys over',
  cutover: 'Switching',
  complete: 'Settling',
}

/** The move that is under way; null when none is. */
export function movingOf(info: SessionInfo | null): Migration | null {
  return info?.migration?.phase ? info.migration : null
}

/** Of a phase that this page does not know, none is marked. */
export function stepsOf({ phase }: Pick<Migration, 'phase'>): Step[] {
  const at = PHASES.findIndex((one) => one === phase)
  return PHASES.map((one, index) => ({
    word: WORDS[one],
    is: at < 0 || index > at ? 'to come' : index < at ? 'done' : 'now',
  }))
}

/** `Moving to db-2: copying`. */
export function movingText({ leaves, host, phase, reason }: Migration): string {
  const word = WORDS[phase as keyof typeof WORDS]
  const what = leaves ? `Moving to ${host}` : `Coming from ${host}`
  if (reason) return `${what} failed: it goes back`
  return word ? `${what}: ${word.toLowerCase()}` : what
}
