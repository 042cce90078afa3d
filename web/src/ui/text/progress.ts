// How far a checkpoint or restore is, in words. Pure.

import type { Progress } from '../../hold/api'
import { bytesText } from './sizes'

export interface HowFar {
  readonly work: string // of the session: `Checkpointing`
  readonly phase: string // what of it: `writing its memory`; '' when this page does not know the phase
  readonly part: number | null // from 0 to 1; null when it is not known
  readonly amount: string // `45 MB of 120 MB`; '' when nothing is counted
  readonly still: boolean // its processes stand still, or there are none yet: keys wait
}

const WORKS: Readonly<Record<string, string>> = {
  checkpoint: 'Checkpointing',
  restore: 'Coming back',
  move: 'Moving',
}
const PHASES: Readonly<Record<string, string>> = {
  freeze: 'writing its memory',
  ask: 'its program writes its state',
  store: 'storing the checkpoint',
  check: 'checking the checkpoint',
  load: 'reading its memory',
  start: 'starting its processes',
}
const RUNS_ON = new Set(['store']) // what was captured is stored while it runs on

const STALE_S = 3 // it comes far oftener: what is older is over, and nobody said so

/** Null where nothing is under way. */
export function howFar(progress: Progress | null | undefined, now: number): HowFar | null {
  if (!progress || now > progress.seenAt + STALE_S) return null
  const { work, phase, done, total } = progress
  return {
    work: Object.hasOwn(WORKS, work) ? WORKS[work]! : 'At work',
    phase: Object.hasOwn(PHASES, phase) ? PHASES[phase]! : '',
    part: total > 0 ? Math.min(1, done / total) : null,
    amount: total > 0 ? `${bytesText(done)} of ${bytesText(total)}` : done > 0 ? bytesText(done) : '',
    still: !RUNS_ON.has(phase),
  }
}

/** `Checkpointing 45 %`, as short as a row wants it. */
export function shortly({ work, part }: HowFar): string {
  return part === null ? work : `${work} ${Math.floor(part * 100)} %`
}
