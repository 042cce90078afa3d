// One session in the overview.

import type { Machine, SessionCard } from '../../hold/api'
import { ActorName, Avatar, StateChip } from '../parts/labels'
import { now } from '../parts/clock'
import { go, path } from '../route'
import { hueOf } from '../text/actor-colour'
import { reapingText } from '../text/checkpoints'
import { age, ago } from '../text/durations'
import { movingOf, movingText } from '../text/moving'
import { howFar, shortly } from '../text/progress'
import { sanitize } from '../text/sanitize'
import { isOver, listedState, needsInput, restsOrOver, stateText } from '../text/session-state'
import { actorNamed } from './known-actors'
import { lineOf } from './filter'
import { runningCommand, sinceOf } from '../text/running'

export function SessionRow({ card, machine }: { card: SessionCard; machine: Machine | undefined }) {
  const { info } = card
  const state = listedState(info)
  const place = { page: 'session', machine: card.machineName, session: info.name } as const
  // An ended session's name may have been given to another one.
  const to = isOver(state) ? { ...place, session: info.id } : place
  const line = lineOf(card)
  const reaping = info.pinned || restsOrOver(state) ? '' : reapingText(card.reaping, now.value)
  const moving = movingOf(info)
  const far = howFar(card.progress, now.value)
  const running = isOver(state) ? null : runningCommand(info)
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
        <strong class="cut" title={sanitize(info.name, 64)}>
          {sanitize(info.name, 64)}
        </strong>
        {reaping && (
          <span
            class="chip tone-attention"
            title={sanitize(card.reaping?.why ?? '', 200)}
            data-testid="session-reaping"
          >
            {reaping}
          </span>
        )}
        {info.labels.map((label) => (
          <span key={label} class="label">
            {label}
          </span>
        ))}
      </span>
      <span class="row-state">
        {moving ? (
          <span class="chip tone-busy" data-testid="session-moving">
            {sanitize(movingText(moving), 60)}
          </span>
        ) : far ? (
          <span
            class="chip tone-busy"
            title={[far.phase, far.amount].filter(Boolean).join(', ')}
            data-testid="session-progress"
          >
            <span class="spinner small" aria-hidden="true" />
            {shortly(far)}
          </span>
        ) : (
          <StateChip info={info} link={card.link} />
        )}
      </span>
      <span class="row-line mono cut" data-testid="session-card-last-line">
        {running && <strong class="row-command">{sanitize(running.text, 120)}</strong>}
        {sanitize(line, 200) || (!running && <span class="faint">{sanitize(info.argv.join(' '), 120)}</span>)}
      </span>
      <span class="row-who">
        <Doer card={card} machine={machine} />
      </span>
      <span class="row-present">
        <Presence card={card} />
      </span>
      <span class="row-age" title={`started ${ago(info.created_at, now.value)}`}>
        {ageText(card)}
      </span>
    </a>
  )
}

/** What runs and who started it; without a command, who has the turn. */
function Doer({ card, machine }: { card: SessionCard; machine: Machine | undefined }) {
  const by = runningCommand(card.info)?.actor
  if (!by || restsOrOver(card.info.state)) return <Holder card={card} machine={machine} />
  return <ActorName name={by} actor={actorNamed(card.machine, by)} you={machine?.actor === by} />
}

function Holder({ card, machine }: { card: SessionCard; machine: Machine | undefined }) {
  const { info } = card
  if (restsOrOver(info.state)) return null
  if (!info.holder) return <span class="faint">turn is free</span>
  const actor = actorNamed(card.machine, info.holder)
  return <ActorName name={info.holder} actor={actor} you={machine?.actor === info.holder} />
}

const PRESENT_SHOWN = 4

/** Who is attached; a ring marks who writes. By number where the list of them is older than that. */
function Presence({ card }: { card: SessionCard }) {
  const { operators, present, holder } = card.info
  if (restsOrOver(card.info.state) || operators === 0) return null
  if (present.length !== operators)
    return <span class="faint">{operators === 1 ? '1 attached' : `${operators} attached`}</span>
  const people = [...new Map(present.map((one) => [one.actor, one])).values()]
  const names = `Attached: ${people.map(({ name }) => sanitize(name, 64)).join(', ')}`
  return (
    <span class="presence" role="img" aria-label={names} title={names}>
      {people.slice(0, PRESENT_SHOWN).map((one) => {
        const actor = actorNamed(card.machine, one.name)
        return (
          <span key={one.actor} class={one.name === holder ? 'is-writer' : ''}>
            <Avatar name={one.name} hue={hueOf(actor?.colour, one.actor)} kind={actor?.kind} />
          </span>
        )
      })}
      {people.length > PRESENT_SHOWN && <span class="faint">+{people.length - PRESENT_SHOWN}</span>}
    </span>
  )
}

function ageText(card: SessionCard): string {
  const { info } = card
  if (restsOrOver(info.state) && info.ended_at !== null) return ago(info.ended_at, now.value)
  const since = sinceOf(info)
  return since === null ? '' : age(now.value - since)
}
