// What needs somebody, across machines, the most urgent first. Pure, but for what was put off.

import { signal } from '@preact/signals'
import type { Machine, SessionCard, SessionInfo } from '../../hold/api'
import { programOf, runningCommand, sinceOf } from '../text/running'
import { endingText, fencedText, inFlightText, isOver, shownState } from '../text/session-state'

type NeedKind = 'secret' | 'question' | 'turn' | 'fenced' | 'halted' | 'lost'

export interface Need {
  readonly kind: NeedKind
  readonly key: string // the same while it is the same need
  readonly card: SessionCard
  readonly text: string // what is asked, or what happened
  readonly quoted: boolean // the text is the program's own
  readonly actor: string // whom it is about; '' when nobody
  readonly asked: string // another one than before is a need of its own to whoever answers it
  readonly about: string // since when, and what is so
  readonly since: number | null
}

const off = signal<ReadonlySet<string>>(new Set())
const offKey = ({ key, asked }: Need): string => `${key} ${asked}`

/** Not now: it is not shown here again, as long as the page is open and the same is asked. */
export function putOff(need: Need): void {
  off.value = new Set([...off.value, offKey(need)])
}

export function isPutOff(need: Need): boolean {
  return off.value.has(offKey(need))
}

const URGENCY: readonly NeedKind[] = ['question', 'secret', 'turn', 'halted', 'fenced', 'lost']

/** Only of machines that are reached: what an old list says need not be so now. */
export function needsOf(cards: readonly SessionCard[], machines: readonly Machine[]): Need[] {
  const names = new Map(machines.map((machine) => [machine.key, machine.actor]))
  return cards
    .filter((card) => card.link === 'online')
    .flatMap((card) => needs(card, names.get(card.machine) ?? ''))
    .sort((one, other) => URGENCY.indexOf(one.kind) - URGENCY.indexOf(other.kind))
}

function needs(card: SessionCard, me: string): Need[] {
  const { info } = card
  const one: Say = (kind, said) => ({
    kind,
    key: `${kind}/${card.machine}/${info.id}`,
    card,
    quoted: false,
    asked: info.waiting_line,
    actor: runningCommand(info)?.actor ?? '',
    since: sinceOf(info),
    ...said,
  })
  const asked =
    me && info.holder === me && info.waiting.length > 0 && !isOver(info.state)
      ? [
          one('turn', {
            text: `${info.waiting.join(', ')} ${info.waiting.length === 1 ? 'asks' : 'ask'} for the turn${said(card)}`,
            asked: info.waiting.join(),
            about: 'you hold the turn',
            actor: info.waiting[0]!,
            since: card.asking?.[0]?.since ?? null,
          }),
        ]
      : []
  return [...ofState(info, one), ...asked]
}

/** What the first of them says, who would get it. */
function said({ asking }: SessionCard): string {
  const words = asking?.[0]?.message
  return words ? `: “${words}”` : ''
}

type Say = (kind: NeedKind, said: Partial<Need> & { text: string; about: string }) => Need

function ofState(info: SessionInfo, one: Say): Need[] {
  switch (shownState(info.state, info.lease, info.full_screen)) {
    case 'input': {
      const asks = info.waiting_line.trim()
      return [
        one('question', {
          text: asks || `${programOf(info)} reads input`,
          quoted: asks !== '',
          about: 'asks',
        }),
      ]
    }
    case 'secret': {
      const asks = info.waiting_line.trim()
      const text = asks || `${programOf(info)} reads with echo off`
      return [one('secret', { text, quoted: asks !== '', about: 'waits for a secret' })]
    }
    case 'halted':
      // Whose command it is, and not who halted it: that is in the journal.
      return [
        one('halted', { text: `${info.name} is halted`, about: `${programOf(info)} is frozen`, actor: '' }),
      ]
    case 'fenced':
      return [one('fenced', { text: `${info.name} is fenced`, about: fencedText(info.lease), actor: '' })]
    case 'lost':
      if (info.acknowledged_at !== null) return []
      return [
        one('lost', {
          text: `${info.name} is ${endingText(info.ending)}`,
          about: inFlightText(info.in_flight),
          actor: '',
        }),
      ]
    default:
      return []
  }
}
