// Commands with actor, status and duration, and what else happened, newest first; turn moves are folded. A click on a command goes to its first line in the scrollback.

import { Fragment } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Actor } from '../../hold/api'
import { partText } from '../approval/approval-words'
import { Icon } from '../parts/icon'
import { Avatar } from '../parts/labels'
import { now } from '../parts/clock'
import { narrow } from '../parts/viewport'
import { hueOf } from '../text/actor-colour'
import { age, clock, took } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { isOver } from '../text/session-state'
import { type Command, type Originator, rowsOf, type TimelineEvent, type TimelineRow } from './timeline-model'
import type { SessionController } from './session-controller'

export function Timeline({ controller }: { controller: SessionController }) {
  const model = controller.timeline.value
  const rows = useMemo(() => rowsOf(model), [model])
  if (rows.length === 0) return <p class="no-rows">{emptyText(controller)}</p>
  const actors = controller.handle.actors.value
  const leftAt = controller.leftAt.value
  const firstOld = leftAt === null ? -1 : rows.findIndex((row) => row.at <= leftAt)
  return (
    <ol class="timeline">
      {rows.map((row, index) => (
        <Fragment key={keyOf(row)}>
          {index === firstOld && index > 0 && <Left at={leftAt!} />}
          {row.kind === 'command' && <CommandEntry {...{ controller, actors }} command={row.command} />}
          {row.kind === 'turns' && <Turns events={row.events} />}
          {row.kind === 'event' && <Happening event={row.event} />}
        </Fragment>
      ))}
      {model.leftOut > 0 && (
        <li class="happening">
          <span>
            {model.leftOut} earlier records: <code>hold log</code>
          </span>
        </li>
      )}
    </ol>
  )
}

function keyOf(row: TimelineRow): string {
  if (row.kind === 'command') return `c${row.command.number}`
  if (row.kind === 'turns') return `t${row.events[0]!.seq}`
  return `h${row.event.seq}-${row.at}`
}

/** Everything above it happened while this operator was away. */
function Left({ at }: { at: number }) {
  return (
    <li class="since" data-testid="timeline-since">
      <Icon name="up" /> New since you left, {clock(at, now.value)}
    </li>
  )
}

function Happening({ event }: { event: TimelineEvent }) {
  return (
    <li class={`happening tone-${event.tone}`}>
      <span>{sanitize(event.text, 240)}</span>
      <time class="faint">{clock(event.at, now.value)}</time>
    </li>
  )
}

function Turns({ events }: { events: readonly TimelineEvent[] }) {
  return (
    <li>
      <details class="turns" data-testid="timeline-turns">
        <summary>the turn moved {events.length} times</summary>
        <ol>
          {events.toReversed().map((event) => (
            <Happening key={event.seq} event={event} />
          ))}
        </ol>
      </details>
    </li>
  )
}

function emptyText(controller: SessionController): string {
  const info = controller.handle.info.value
  if (info && !info.shell && !isOver(info.state)) {
    return 'This session runs a program that does not report commands. What was typed is in its journal: hold log.'
  }
  if (info && isOver(info.state)) return 'No commands were recorded. The full journal: hold log.'
  return 'No commands yet.'
}

function CommandEntry({
  controller,
  command,
  actors,
}: {
  controller: SessionController
  command: Command
  actors: readonly Actor[]
}) {
  const actor = actors.find((one) => one.name === command.actor)
  const jump = async (): Promise<void> => {
    await controller.jump(command.number)
    if (narrow.value) controller.panel.value = false
  }
  const chosen = controller.chosen.value === command.number
  const entry = useRef<HTMLButtonElement>(null)
  useEffect(() => {
    if (chosen) entry.current?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  const others = command.authors.filter((name) => name !== command.actor)
  return (
    <li>
      <button
        ref={entry}
        class={`command ${chosen ? 'is-chosen' : ''}`}
        aria-current={chosen || undefined}
        data-testid="timeline-entry"
        data-seq={command.number}
        onClick={() => void jump()}
      >
        <Avatar
          name={command.actor || '?'}
          hue={hueOf(actor?.colour, actor?.id || command.actor)}
          kind={actor?.kind}
        />
        <code class="command-text cut">{sanitize(command.text, 300)}</code>
        <time class="faint">{clock(command.beganAt, now.value)}</time>
        <span class="command-about">
          <span class="actor-name cut">{sanitize(command.actor || 'nobody known', 64)}</span>
          {command.originators.length > 0 && <Originators of={command.originators} />}
          {others.length > 0 && <span class="faint">with {sanitize(others.join(', '), 80)}</span>}
          <Outcome command={command} over={controller.handle.link.value.at === 'ended'} />
        </span>
      </button>
    </li>
  )
}

/** Beside who set it off: whose state, files or text it used. */
function Originators({ of }: { of: readonly Originator[] }) {
  const names = [...new Set(of.map(({ name }) => name))].join(', ')
  const parts = of.map((one) => `${one.name} ${partText(one)}`).join('\n')
  return (
    <span class="faint cut" title={sanitizeLines(parts)} data-testid="originators">
      from {sanitize(names, 80)}
    </span>
  )
}

function sanitizeLines(text: string): string {
  return text
    .split('\n')
    .map((line) => sanitize(line, 200))
    .join('\n')
}

function Outcome({ command, over }: { command: Command; over: boolean }) {
  if (command.status === null || command.endedAt === null) {
    // Its shell went with it: nobody was left to say how it ended.
    if (over) return <span class="outcome">ended with the session</span>
    return <span class="outcome tone-busy">running · {age(now.value - command.beganAt)}</span>
  }
  const time = took(command.endedAt - command.beganAt)
  if (command.status === 0) return <span class="outcome tone-good">ok · {time}</span>
  return (
    <span class="outcome tone-danger">
      status {command.status} · {time}
    </span>
  )
}
