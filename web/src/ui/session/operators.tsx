// Operators attached now, and the other actors known on the machine.

import { useEffect } from 'preact/hooks'
import type { Actor, Attendee } from '../../hold/api'
import { useHold } from '../context'
import { ActorLink } from '../parts/labels'
import { now } from '../parts/clock'
import { ago } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

export function Operators({ controller }: { controller: SessionController }) {
  const { machines } = useHold()
  const key = controller.handle.machine
  const machine = machines.value.find((one) => one.key === key)?.name ?? key
  const presence = controller.handle.operators.value
  // An operator attached or detached: reload the list.
  useEffect(() => {
    controller.handle.refresh().catch(() => undefined)
  }, [controller, presence?.operators, presence?.observers])
  const present = controller.handle.info.value?.present ?? []
  const actors = controller.handle.actors.value
  const unnamed = Math.max(0, (presence?.operators ?? 0) - present.length)
  const here = new Set(present.map((one) => one.actor))
  const away = actors.filter((actor) => !here.has(actor.id) && actor.revoked_at === null)
  return (
    <>
      <h2 class="panel-title">Attached now</h2>
      <ul class="people">
        {present.map((one) => (
          <Attached
            key={`${one.actor} ${one.since}`}
            controller={controller}
            machine={machine}
            one={one}
            actor={actors.find((actor) => actor.id === one.actor)}
          />
        ))}
        {unnamed > 0 && <li class="faint">and {unnamed} more</li>}
        {present.length === 0 && unnamed === 0 && <li class="faint">Nobody. The session keeps running.</li>}
      </ul>
      {away.length > 0 && (
        <>
          <h2 class="panel-title">Known on this machine</h2>
          <ul class="people">
            {away.map((actor) => (
              <li key={actor.id} data-testid="operator-row" data-actor={actor.name}>
                <ActorLink machine={machine} name={actor.name} actor={actor} />
                <span class="faint">{actor.kind}</span>
                <Standing controller={controller} actor={actor.id} />
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  )
}

function Attached({
  controller,
  machine,
  one,
  actor,
}: {
  machine: string
  controller: SessionController
  one: Attendee
  actor: Actor | undefined
}) {
  return (
    <li data-testid="operator-row" data-actor={one.name} data-attached="true">
      <ActorLink
        machine={machine}
        name={one.name}
        id={one.actor}
        actor={actor}
        you={one.actor === controller.handle.me.value?.id}
      />
      <span class="faint">
        {[actor?.kind, sanitize(one.client, 40), one.observe ? 'watching' : ''].filter(Boolean).join(' · ')}
      </span>
      <span class="grow" />
      <Standing controller={controller} actor={one.actor} />
      <span class="faint">{ago(one.since, now.value)}</span>
    </li>
  )
}

function Standing({ controller, actor }: { controller: SessionController; actor: string }) {
  const turn = controller.handle.turn.value?.turn
  if (turn?.holder === actor) return <span class="chip tone-busy">holds the turn</span>
  if (turn?.queue.some((one) => one.actor === actor))
    return <span class="chip tone-attention">asks for the turn</span>
  return null
}
