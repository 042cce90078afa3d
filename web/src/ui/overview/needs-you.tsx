// What needs somebody, on top of the overview: approvals, questions, secrets, requests for the turn, what is halted, fenced or lost.

import { useRef } from 'preact/hooks'
import type { ApprovalCard, Machine } from '../../hold/api'
import { waitsForYou } from '../approval/approval-words'
import { useHold } from '../context'
import { ActorName } from '../parts/labels'
import { Icon } from '../parts/icon'
import { now } from '../parts/clock'
import { toastError } from '../parts/toast'
import { go, path } from '../route'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { isOver } from '../text/session-state'
import { ApprovalNeed } from './approval-need'
import { actorNamed } from './known-actors'
import { needsOf, type Need } from './needs'

const LOOKS = {
  question: ['ask', 'attention', 'Answer'],
  secret: ['key', 'attention', 'Enter it…'],
  turn: ['hand', 'attention', 'Open'],
  halted: ['halt', 'danger', 'Open'],
  fenced: ['lock', 'danger', 'Open'],
  lost: ['warn', 'danger', 'See what is known'],
} as const

type NeedOrApproval = Need | { readonly key: string; readonly approval: ApprovalCard }

export function NeedsYou() {
  const hold = useHold()
  const machines = hold.machines.value
  const machineOf = (key: string): Machine | undefined => machines.find((one) => one.key === key)
  const held = hold.approvals.value.filter(
    (card) => card.link === 'online' && waitsForYou(card, machineOf(card.machine)),
  )
  const needs = useSteadyOrder<NeedOrApproval>([
    ...held.map((approval) => ({ key: `approval/${approval.machine}/${approval.info.id}`, approval })),
    ...needsOf(hold.sessions.value, machines),
  ])
  if (needs.length === 0) return null
  return (
    <section class="needs" data-testid="needs-you" aria-labelledby="needs-you-title">
      <header class="needs-head row">
        <h2 id="needs-you-title">Needs you</h2>
        <span class="count tone-attention">{needs.length}</span>
        <span class="grow" />
        {machines.length > 1 && <span class="faint">across {machines.length} machines</span>}
      </header>
      <ul class="rows">
        {needs.map((need) =>
          'approval' in need ? (
            <ApprovalNeed key={need.key} card={need.approval} machine={machineOf(need.approval.machine)} />
          ) : (
            <NeedRow key={need.key} need={need} machine={machineOf(need.card.machine)} />
          ),
        )}
      </ul>
    </section>
  )
}

/** Nothing moves under a finger: what is new is added below until the page is left. */
function useSteadyOrder<T extends { readonly key: string }>(needs: readonly T[]): T[] {
  const seen = useRef(new Map<string, number>())
  for (const { key } of needs) if (!seen.current.has(key)) seen.current.set(key, seen.current.size)
  return [...needs].sort((one, other) => seen.current.get(one.key)! - seen.current.get(other.key)!)
}

function NeedRow({ need, machine }: { need: Need; machine: Machine | undefined }) {
  const hold = useHold()
  const { card, kind } = need
  const [icon, tone, word] = LOOKS[kind]
  const { info } = card
  const place = {
    page: 'session',
    machine: card.machineName,
    session: isOver(info.state) ? info.id : info.name,
  } as const
  const acknowledge = (): void => {
    hold.acknowledge(card.machine, info.id).catch(toastError)
  }
  return (
    <li class={`need tone-${tone}`} data-testid="need" data-kind={kind} data-session={info.name}>
      <span class="need-mark" aria-hidden="true">
        <Icon name={icon} />
      </span>
      <span class="need-what">
        <span class={`need-text cut ${need.quoted ? 'mono' : ''}`}>{sanitize(need.text, 160)}</span>
        <span class="need-about cut">
          {need.actor && (
            <ActorName
              name={need.actor}
              actor={actorNamed(card.machine, need.actor)}
              you={machine?.actor === need.actor}
            />
          )}
          <span class="cut">
            {need.text.startsWith(`${info.name} `) ? '' : `${sanitize(info.name, 64)} `}on{' '}
            {sanitize(card.machineName, 64)} · {sanitize(need.about, 160)}
            {need.since !== null && ` · ${age(now.value - need.since)}`}
          </span>
        </span>
      </span>
      <span class="need-acts row">
        {kind === 'lost' && (machine?.rights.includes('end') ?? false) && (
          <button class="button" data-testid="need-acknowledge" onClick={acknowledge}>
            Acknowledge
          </button>
        )}
        <a
          class="button"
          href={path(place)}
          data-testid="need-open"
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return
            event.preventDefault()
            go(place)
          }}
        >
          {word}
        </a>
      </span>
    </li>
  )
}
