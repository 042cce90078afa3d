// A row of *Needs you*: something waits for this device's approval. Denying is done here; approving needs a look first.

import { useSignal } from '@preact/signals'
import type { ApprovalCard, Machine } from '../../hold/api'
import { policyText, wantsShort } from '../approval/approval-words'
import { useHold } from '../context'
import { now } from '../parts/clock'
import { Icon } from '../parts/icon'
import { ActorName } from '../parts/labels'
import { toastError } from '../parts/toast'
import { go, path } from '../route'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { actorNamed } from './known-actors'

export function ApprovalNeed({ card, machine }: { card: ApprovalCard; machine: Machine | undefined }) {
  const { info } = card
  const kind = info.contributors.find(({ name }) => name === info.actor)?.kind
  const left = info.expires_at - now.value
  return (
    <li class="need tone-attention" data-testid="need" data-kind="approval" data-session={info.name}>
      <span class="need-mark" aria-hidden="true">
        <Icon name="shield" />
      </span>
      <span class="need-what">
        <span class="need-text cut">
          {sanitize(info.actor, 64)} {wantsShort(info)} <code>{sanitize(info.text, 160)}</code>
        </span>
        <span class="need-about cut">
          <ActorName
            name={info.actor}
            actor={actorNamed(card.machine, info.actor)}
            kind={kind}
            you={machine?.actor === info.actor}
          />
          <span class="cut">
            {sanitize(info.name, 64)} on {sanitize(card.machineName, 64)} ·{' '}
            {left > 0 ? `expires in ${age(left)}` : 'expires now'} · held by{' '}
            {sanitize(policyText(info.policy), 80)}
          </span>
        </span>
      </span>
      <span class="need-acts row">
        <DenyReview card={card} />
      </span>
    </li>
  )
}

/** Both, where there is no room to read it all. */
export function DenyReview({ card }: { card: ApprovalCard }) {
  const hold = useHold()
  const busy = useSignal(false)
  const { info } = card
  const place = { page: 'approval', machine: card.machineName, approval: info.id } as const
  const deny = (): void => {
    busy.value = true
    hold
      .deny(card.machine, info.id, '', '')
      .catch(toastError)
      .finally(() => (busy.value = false))
  }
  return (
    <>
      <button class="button" data-testid="need-deny" disabled={busy.value} onClick={deny}>
        Deny
      </button>
      <a
        class="button primary"
        href={path(place)}
        data-testid="need-review"
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          go(place)
        }}
      >
        Review
      </a>
    </>
  )
}
