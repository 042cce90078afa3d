// The line on top of the terminal: who does what, since when, and what you may do.

import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Avatar } from '../parts/labels'
import { Icon } from '../parts/icon'
import { now } from '../parts/clock'
import { sideways } from '../parts/viewport'
import { hueOf } from '../text/actor-colour'
import { may as mayWith } from '../text/rights'
import { sanitize } from '../text/sanitize'
import { stateLine, type StateLine as Line } from '../text/state-line'
import { useHeld } from './held-card'
import { useHowFar } from './progress-bar'
import { haltOf } from './timeline-model'
import type { SessionController } from './session-controller'

const ICONS = {
  connecting: 'link',
  offline: 'link',
  asleep: 'moon',
  checkpointing: 'disk',
  moved: 'move',
  fenced: 'lock',
  halted: 'halt',
  stopped: 'halt',
  ended: 'close',
  lost: 'warn',
  secret: 'key',
  waiting: 'ask',
  held: 'shield',
} as const

const SPARE = 2 // characters: the words around are strong, and wider than those they are counted in

export function StateLine({ controller, machine }: { controller: SessionController; machine: string }) {
  const line = useLine(controller, machine)
  const blind = controller.handle.turn.value?.turn.blind ?? false
  const second = [line.since, line.may].filter(Boolean).join(' · ')
  return (
    <span class={`state-line grow tone-${line.tone}`} data-testid="turn-holder" data-state={line.mark}>
      <Mark line={line} controller={controller} />
      <span class="state-words">
        <strong
          class="state-what cut"
          style={{ '--around': `${line.before.length + line.after.length + SPARE}ch` }}
        >
          {sanitize(line.before, 160)}
          {line.code && <code>{sanitize(line.code, 200)}</code>}
          {line.after}
        </strong>
        <span class="state-about cut" title={second}>
          {sideways.value && `${sanitize(controller.handle.info.value?.name ?? '', 64)} · `}
          {sanitize(second, 200)}
        </span>
      </span>
      {blind && <span class="chip tone-attention">blind</span>}
    </span>
  )
}

const SAID_MS = 5000 // at the least between two: a session that does one thing after the other would never be silent

/** The same for those who do not see it, and no oftener than it can be listened to. */
export function SaidState({ controller, machine }: { controller: SessionController; machine: string }) {
  const line = useLine(controller, machine)
  const said = useSignal('')
  const latest = useRef('')
  const timer = useRef(0)
  latest.current = sanitize(`${line.before}${line.code}${line.after}`, 300)
  const words = latest.current
  useEffect(() => {
    if (timer.current) return
    const say = (): void => {
      const changed = said.peek() !== latest.current
      said.value = latest.current
      timer.current = changed ? window.setTimeout(say, SAID_MS) : 0
    }
    say()
  }, [words])
  useEffect(() => () => clearTimeout(timer.current), [])
  return (
    <span class="unseen" role="status" data-testid="said-state">
      {said.value}
    </span>
  )
}

/** Whoever does it; else a sign for what is so. */
function Mark({ line, controller }: { line: Line; controller: SessionController }) {
  if (line.actor && line.tone === 'plain') {
    const actor = controller.handle.actors.value.find((one) => one.name === line.actor)
    return <Avatar name={line.actor} hue={hueOf(actor?.colour, actor?.id || line.actor)} kind={actor?.kind} />
  }
  const icon = ICONS[line.mark as keyof typeof ICONS] ?? 'keyboard'
  return (
    <span class="state-mark" aria-hidden="true">
      <Icon name={icon} />
    </span>
  )
}

function useLine(controller: SessionController, machine: string): Line {
  const { handle, timeline } = controller
  const held = useHeld(controller)
  const rights = handle.rights.value
  return stateLine({
    info: handle.info.value,
    link: handle.link.value,
    turn: handle.turn.value,
    mayType: mayWith(rights, 'input') && !handle.observing.value,
    mayResume: mayWith(rights, 'halt'),
    halt: haltOf(timeline.value),
    far: useHowFar(controller),
    held: held[0]?.info ?? null,
    me: handle.me.value?.name ?? '',
    machine,
    now: now.value,
  })
}
