// Under the terminal: what waits for approval in this session, for whoever may decide, and for whoever waits.

import type { ApprovalCard } from '../../hold/api'
import { quorumText, waitsForYou, wantsShort, whyNot } from '../approval/approval-words'
import { useHold } from '../context'
import { DenyReview } from '../overview/approval-need'
import { now } from '../parts/clock'
import { go, path } from '../route'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

/** What waits in this session, the oldest first. */
export function useHeld({ handle }: SessionController): ApprovalCard[] {
  const id = handle.info.value?.id
  return useHold().approvals.value.filter(
    ({ machine, info }) => machine === handle.machine && info.session === id && info.status === 'pending',
  )
}

export function HeldCard({ controller }: { controller: SessionController }) {
  const hold = useHold()
  const held = useHeld(controller)
  const card = held[0]
  if (!card || controller.handle.link.value.at !== 'online') return null
  const { info } = card
  const machine = hold.machines.value.find(({ key }) => key === card.machine)
  const mine = info.actor === machine?.actor
  const left = info.expires_at - now.value
  const place = { page: 'approval', machine: card.machineName, approval: info.id } as const
  return (
    <section
      class="held-card"
      aria-label="Waits for approval"
      data-testid="held-card"
      data-approval={info.id}
    >
      <p class="held-what">
        <strong>
          {mine ? 'Your line waits for approval' : `${sanitize(info.actor, 64)} ${wantsShort(info)}`}
        </strong>
        <code class="held-text cut">{sanitize(info.text, 300)}</code>
        <small class="faint">
          {[
            info.reason && sanitize(info.reason, 160),
            quorumText(info),
            left > 0 ? `expires in ${age(left)}` : 'expires now',
            mine && 'Ctrl+C withdraws it',
            held.length > 1 && `${held.length - 1} more wait`,
          ]
            .filter(Boolean)
            .join(' · ')}
        </small>
      </p>
      {waitsForYou(card, machine) ? (
        <DenyReview card={card} />
      ) : (
        <a
          class="button"
          href={path(place)}
          title={whyNot(info, machine)}
          onClick={(event) => {
            event.preventDefault()
            go(place)
          }}
        >
          Look
        </a>
      )}
    </section>
  )
}
