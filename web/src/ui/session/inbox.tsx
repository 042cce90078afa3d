// Requests for the turn that need an answer.

import type { WaitingInfo } from '../../hold/api'
import { ActorName } from '../parts/labels'
import { now } from '../parts/clock'
import { ago } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

export function Inbox({ controller }: { controller: SessionController }) {
  const state = controller.handle.turn.value
  const queue = state?.turn.queue ?? []
  const actors = controller.handle.actors.value
  const me = controller.handle.me.value?.id
  if (queue.length === 0) {
    return <p class="no-rows">No requests. Requests for the turn appear here.</p>
  }
  return (
    <ul class="inbox">
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
      {!state?.yours && <li class="faint">Only the turn holder can give the turn.</li>}
    </ul>
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
