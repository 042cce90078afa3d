// Which sessions an overview shows, and in which order. Pure.

import type { SessionCard } from '../../hold/api'
import { inFlightText, isOver, needsInput, shownState, stateText } from '../text/session-state'

export type Show = 'live' | 'needs' | 'ended'

interface Wanted {
  readonly text: string
  readonly labels: readonly string[]
  readonly show: Show
}

/** Every word must be found somewhere in what people know a session by. */
export function matches(card: SessionCard, wanted: Wanted): boolean {
  const { info } = card
  const state = shownState(info.state, info.lease, info.full_screen)
  if (isSettled(card) !== (wanted.show === 'ended')) return false
  if (wanted.show === 'needs' && !needsInput(state)) return false
  if (!wanted.labels.every((label) => info.labels.includes(label))) return false
  const text = [info.name, info.id, card.machineName, ...info.labels, ...info.argv, info.cwd, info.title]
    .concat(info.holder, stateText(state).word, card.lastLine)
    .join('\n')
    .toLowerCase()
  return wanted.text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** It is over, and nobody need hear of it: a session that was lost is shown with the live ones until
    somebody acknowledged it. */
function isSettled({ info }: SessionCard): boolean {
  return isOver(info.state) && (info.state !== 'lost' || info.acknowledged_at !== null)
}

/** Sessions that wait for input first, then by name: a list that moves at every output cannot be read. */
export function order(cards: readonly SessionCard[]): SessionCard[] {
  const rank = (card: SessionCard): number => {
    const state = shownState(card.info.state, card.info.lease, card.info.full_screen)
    if (needsInput(state)) return 0
    return isSettled(card) ? 2 : 1
  }
  return [...cards].sort((one, other) => {
    const by = rank(one) - rank(other)
    if (by !== 0) return by
    if (rank(one) === 2) return (other.info.ended_at ?? 0) - (one.info.ended_at ?? 0)
    return one.info.name.localeCompare(other.info.name)
  })
}

export function labelsOf(cards: readonly SessionCard[]): string[] {
  return [...new Set(cards.flatMap((card) => card.info.labels))].sort()
}

export function countOf(cards: readonly SessionCard[], show: Show): number {
  return cards.filter((card) => matches(card, { text: '', labels: [], show })).length
}

/** The line under the name: the prompt it waits at, or the last line it printed. */
export function lineOf(card: SessionCard): string {
  const state = shownState(card.info.state, card.info.lease, card.info.full_screen)
  if (needsInput(state) && card.info.waiting_line) return card.info.waiting_line
  if (state === 'lost') return inFlightText(card.info.in_flight)
  return card.lastLine
}
