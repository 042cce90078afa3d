// What needs an answer in this session: things that wait for approval, and requests for the turn.

import type { Actor, ApprovalCard, Machine, WaitingInfo } from '../../hold/api'
import { waitsForYou, wantsShort } from '../approval/approval-words'
import { useHold } from '../context'
import { DenyReview } from '../overview/approval-need'
import { ActorName } from '../parts/labels'
import { now } from '../parts/clock'
import { ago } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { useHeld } from './held-card'
import type { SessionController } from './session-controller'

export function Inbox({ controller }: { controller: SessionController }) {
  const state = controller.handle.turn.value
  const queue = state?.turn.queue ?? []
  const actors = controller.handle.actors.value
  const me = controller.handle.me.value?.id
  const hold = useHold()
  const held = useHeld(controller)
  if (queue.length === 0 && held.length === 0) {
    return (
      <p class="no-rows">No requests. Requests for the turn, and what waits for approval, appear here.</p>
    )
  }
  return (
    <ul class="inbox">
      {held.map((card) => (
        <Held key={card.info.id} card={card} machines={hold.machines.value} actors={actors} />
      ))}
      {queue.map((asks) => (
        <li key={asks.actor} class="ask">
          <div class="ask-head">
            <ActorName
              name={asks.name}
              id={asks.actor}
              actor={actors.find((one) => one.id === asks.actor)}
              kind=""
              you={asks.actor === me}
            />
            <span class="faint">asks for the turn · {ago(asks.since, now.value)}</span>
          </div>
          {asks.message && <p class="ask-text">{sanitize(asks.message, 200)}</p>}
          {state?.yours && (
            <div class="actions">
              <GiveTurn controller={controller} asks={asks} />
            </div>
          )}
        </li>
      ))}
      {!state?.yours && queue.length > 0 && <li class="faint">Only the turn holder can give the turn.</li>}
    </ul>
  )
}

function Held({
  card,
  machines,
  actors,
}: {
  card: ApprovalCard
  machines: readonly Machine[]
  actors: readonly Actor[]
}) {
  const { info } = card
  const machine = machines.find(({ key }) => key === card.machine)
  return (
    <li class="ask" data-testid="inbox-approval">
      <div class="ask-head">
        <ActorName name={info.actor} actor={actors.find(({ name }) => name === info.actor)} />
        <span class="faint">
          {wantsShort(info)} · {ago(info.asked_at, now.value)}
        </span>
      </div>
      <p class="ask-text mono">{sanitize(info.text, 300)}</p>
      {waitsForYou(card, machine) && (
        <div class="actions">
          <DenyReview card={card} />
        </div>
      )}
    </li>
  )
}

export function GiveTurn({ controller, asks }: { controller: SessionController; asks: WaitingInfo }) {
  return (
    <button
      class="button small primary"
      data-testid="turn-grant"
      data-actor={asks.name}
      onClick={() => void controller.act(controller.handle.grantTurn(asks.actor))}
    >
      Give the turn
    </button>
  )
}
