// What needs somebody, on top of the overview: approvals, questions, secrets, requests for the turn, what is halted, fenced or lost.

import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ApprovalCard, Machine } from '../../hold/api'
import { waitsForYou } from '../approval/approval-words'
import { useHold } from '../context'
import { ActorName } from '../parts/labels'
import { Icon } from '../parts/icon'
import { now } from '../parts/clock'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { ApprovalNeed } from './approval-need'
import { actorNamed } from './known-actors'
import { NeedActs, NeedForm, leadsTo } from './need-acts'
import { isPutOff, needsOf, type Need } from './needs'

const LOOKS = {
  question: ['ask', 'attention'],
  secret: ['key', 'attention'],
  turn: ['hand', 'attention'],
  halted: ['halt', 'danger'],
  fenced: ['lock', 'danger'],
  lost: ['warn', 'danger'],
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
    ...needsOf(hold.sessions.value, machines).filter((need) => !isPutOff(need)),
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
      <NewNeeds needs={needs} />
      <ul class="rows">
        {needs.map((need) =>
          'approval' in need ? (
            <ApprovalNeed key={need.key} card={need.approval} machine={machineOf(need.approval.machine)} />
          ) : (
            <NeedRow key={`${need.key} ${need.asked}`} need={need} machine={machineOf(need.card.machine)} />
          ),
        )}
      </ul>
    </section>
  )
}

/** What is new, once, for those who do not see the list. */
function NewNeeds({ needs }: { needs: readonly NeedOrApproval[] }) {
  const said = useRef(new Set<string>())
  const text = useRef('')
  const fresh = needs.filter(({ key }) => !said.current.has(key))
  for (const { key } of fresh) said.current.add(key)
  if (fresh.length > 0) text.current = fresh.map(needText).join('. ')
  return (
    <p class="unseen" role="status">
      {text.current}
    </p>
  )
}

function needText(need: NeedOrApproval): string {
  if ('approval' in need) return `${sanitize(need.approval.info.name, 64)} waits for approval`
  const { text, card, about } = need
  const name = sanitize(card.info.name, 64)
  return `${text.startsWith(`${name} `) ? '' : `${name}: `}${sanitize(text, 160)}, ${sanitize(about, 80)}`
}

/** Nothing moves under a finger: what is new is added below until the page is left. */
function useSteadyOrder<T extends { readonly key: string }>(needs: readonly T[]): T[] {
  const seen = useRef(new Map<string, number>())
  for (const { key } of needs) if (!seen.current.has(key)) seen.current.set(key, seen.current.size)
  return [...needs].sort((one, other) => seen.current.get(one.key)! - seen.current.get(other.key)!)
}

function NeedRow({ need, machine }: { need: Need; machine: Machine | undefined }) {
  const { card, kind } = need
  const [icon, tone] = LOOKS[kind]
  const { info } = card
  const busy = useSignal(false)
  const form = useSignal(false)
  return (
    <li class={`need tone-${tone}`} data-testid="need" data-kind={kind} data-session={info.name}>
      <span class="need-mark" aria-hidden="true">
        <Icon name={icon} />
      </span>
      <a class="need-what" data-testid="need-link" {...leadsTo(card)}>
        <span class={`need-text cut ${need.quoted ? 'mono' : ''}`}>{sanitize(need.text, 300)}</span>
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
      </a>
      <span class="need-acts row">
        <NeedActs {...{ need, machine, busy, form }} />
      </span>
      <NeedForm {...{ need, machine, busy, form }} />
    </li>
  )
}
