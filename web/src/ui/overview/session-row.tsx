// One session in the overview.

import type { Machine, SessionCard } from '../../hold/api'
import { ActorName, StateChip } from '../parts/labels'
import { now } from '../parts/clock'
import { go, path } from '../route'
import { age, ago } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { isOver, needsInput, shownState, stateText } from '../text/session-state'
import { actorNamed } from './known-actors'
import { lineOf } from './filter'

export function SessionRow({ card, machine }: { card: SessionCard; machine: Machine | undefined }) {
  const { info } = card
  const state = shownState(info.state, info.lease, info.full_screen)
  const place = { page: 'session', machine: card.machineName, session: info.name } as const
  // An ended session's name may have been given to another one.
  const to = isOver(state) ? { ...place, session: info.id } : place
  const line = lineOf(card)
  return (
    <a
      class={`session-row ${needsInput(state) ? 'needs-you' : ''}`}
      href={path(to)}
      data-testid="session-card"
      data-session={info.name}
      data-machine={card.machineName}
      data-state={stateText(state).mark}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        go(to)
      }}
    >
      <span class="row-name">
        <strong>{sanitize(info.name, 64)}</strong>
        {info.labels.map((label) => (
          <span key={label} class="label">
            {label}
          </span>
        ))}
      </span>
      <span class="row-state">
        <StateChip info={info} link={card.link} />
      </span>
      <span class="row-line mono cut" data-testid="session-card-last-line">
        {sanitize(line, 200) || <span class="faint">{sanitize(info.argv.join(' '), 120)}</span>}
      </span>
      <span class="row-who">
        <Holder card={card} machine={machine} />
        <Presence card={card} />
      </span>
      <span class="row-age" title={`started ${ago(info.created_at, now.value)}`}>
        {ageText(card)}
      </span>
    </a>
  )
}

function Holder({ card, machine }: { card: SessionCard; machine: Machine | undefined }) {
  const { info } = card
  if (isOver(info.state)) return null
  if (!info.holder) return <span class="faint">turn is free</span>
  const actor = actorNamed(card.machine, info.holder)
  return <ActorName name={info.holder} actor={actor} you={machine?.actor === info.holder} />
}

function Presence({ card }: { card: SessionCard }) {
  const { operators } = card.info
  if (isOver(card.info.state) || operators === 0) return null
  return <span class="faint">{operators === 1 ? '1 attached' : `${operators} attached`}</span>
}

function ageText(card: SessionCard): string {
  const { info } = card
  if (isOver(info.state) && info.ended_at !== null) return ago(info.ended_at, now.value)
  return age(now.value - info.created_at)
}
