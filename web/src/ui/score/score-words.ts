// What a page says of an actor's record. Pure.

import type { ActorScore, Deviation, ScoreTotals } from '../../hold/api'

export const MEASURES = ['valid', 'success', 'clean'] as const
export type Measure = (typeof MEASURES)[number]

export const TITLES: Record<Measure, string> = { valid: 'Valid', success: 'Succeeded', clean: 'Clean' }

/** Of how many actions this is a share: what nobody could measure counts neither way. */
export function outOf(measure: Measure, totals: ScoreTotals): number {
  return measure === 'valid' ? totals.actions : totals.measured
}

/** From 0 to 1; null where there is nothing to take a share of. */
export function share(measure: Measure, totals: ScoreTotals): number | null {
  const whole = outOf(measure, totals)
  return whole > 0 ? totals[measure] / whole : null
}

export function percent(value: number | null): string {
  return value === null ? '–' : `${(100 * value).toFixed(1)} %`
}

/** What a share is of. */
export function means(measure: Measure, totals: ScoreTotals): string {
  const { actions, measured } = totals
  const of = `${totals[measure]} of ${measure === 'valid' ? actions : measured}`
  if (outOf(measure, totals) === 0) return 'nothing was measured'
  if (measure === 'valid') return `${of} were well formed and allowed`
  if (measure === 'success') return `${of}, by exit status and expectations`
  return `${of} had no undeclared effect`
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`
}

/** The sentence at the top, and what it rests on. */
export function summary(score: ActorScore, machine: string): string {
  const { actions, measured, valid } = score.totals
  if (score.recent === null) return `Measured on ${machine}. None of its actions has a score.`
  const last = score.recent_count === 1 ? 'its last action' : `its last ${score.recent_count} actions`
  const unmeasured =
    valid > measured ? ` Of ${count(valid - measured, 'action')} the effects are not known.` : ''
  const known = actions > 0 ? `Measured on ${machine}.${unmeasured} ` : ''
  return `${known}Policies judge by ${last}: ${Math.floor(100 * score.recent)} per cent.`
}

const WORDS: Record<string, string> = {
  file_created: 'created',
  file_changed: 'changed',
  file_deleted: 'deleted',
  process: 'left running:',
  port_opened: 'listens on port',
  port_closed: 'closed port',
  cwd: 'left the shell in',
  peer: 'is connected to',
}

/** `env` already says what it is: `env FOO added`. */
export function effectText({ kind, what }: Deviation): string {
  if (kind === 'env') return `changed the shell: ${what.replace(/^env /, '')}`
  return `${WORDS[kind] ?? kind.replaceAll('_', ' ')} ${what}`
}
