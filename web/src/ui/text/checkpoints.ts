// A checkpoint in words: when, by whom, how large, and what comes back from it. Pure.

import type { CheckpointInfo, Reaping, RestoreReport } from '../../hold/api'
import { age, ago } from './durations'
import { bytesText } from './sizes'

/** `12 MB · stood still for 34 ms`. */
export function madeText({ bytes, frozen_ms }: CheckpointInfo): string {
  return `${bytesText(bytes)} · stood still for ${Math.max(1, Math.round(frozen_ms))} ms`
}

/** `5m ago by maria: “before the upgrade”, 12 MB`. */
export function whenAndWho({ at, actor, note, bytes }: CheckpointInfo, now: number): string {
  const why = note && `: “${note}”`
  return `Made ${ago(at, now)} by ${actor || 'the host'}${why}, ${bytesText(bytes)}.`
}

/** What could not come back, and what became of files, for a notice; empty when there is nothing. */
export function notBack({ reset, inputs_lost, files }: RestoreReport): string {
  const said = []
  if (reset.length > 0) said.push(`connections reset: ${reset.map(({ peer }) => peer).join(', ')}`)
  if (inputs_lost > 0) said.push(`${counted(inputs_lost, 'input', 'inputs')} came after the checkpoint`)
  if (files && files.put_back > 0) {
    const kept = files.kept_in.length > 0
    const where = kept ? `, what was there instead is in ${files.kept_in.join(', ')}` : ''
    said.push(`${counted(files.put_back, 'file was', 'files were')} put back${where}`)
  }
  if (files && files.left_count > 0)
    said.push(`${counted(files.left_count, 'file that differs was', 'files that differ were')} left`)
  return said.join('; ')
}

function counted(number: number, one: string, several: string): string {
  return `${number} ${number === 1 ? one : several}`
}

const OVERDUE_S = 60 // a host that did not do it by then had a reason

/** What is about to be done to a session that nobody uses; empty when nothing is. */
export function reapingText(reaping: Reaping | null | undefined, now: number): string {
  if (!reaping || now > reaping.due_at + OVERDUE_S) return ''
  const left = reaping.due_at - now
  const deed = reaping.action === 'evict' ? 'put to sleep' : 'ended'
  return `unused: ${deed} ${left > 1 ? `in ${age(left)}` : 'now'}`
}
