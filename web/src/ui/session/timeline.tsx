// Commands with actor, status and duration, and changes of the turn, newest first. A click on a command goes to its first line in the scrollback.

import type { Actor } from '../../hold/api'
import { ActorName } from '../parts/labels'
import { now } from '../parts/clock'
import { narrow } from '../parts/viewport'
import { age, clock, took } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { isOver } from '../text/session-state'
import type { Command, TimelineEvent } from './timeline-model'
import type { SessionController } from './session-controller'

type Entry = { at: number; command: Command } | { at: number; happening: TimelineEvent }

export function Timeline({ controller }: { controller: SessionController }) {
  const { commands, events } = controller.timeline.value
  const entries: Entry[] = [
    ...commands.map((command) => ({ at: command.beganAt, command })),
    ...events.map((happening) => ({ at: happening.at, happening })),
  ].sort((one, other) => other.at - one.at)
  if (entries.length === 0) return <p class="no-rows">{emptyText(controller)}</p>
  const actors = controller.handle.actors.value
  return (
    <ol class="timeline">
      {entries.map((entry) =>
        'command' in entry ? (
          <CommandEntry
            key={`c${entry.command.number}`}
            controller={controller}
            command={entry.command}
            actors={actors}
          />
        ) : (
          <li key={`h${entry.happening.seq}-${entry.at}`} class={`happening tone-${entry.happening.tone}`}>
            <span>{sanitize(entry.happening.text, 240)}</span>
            <time class="faint">{clock(entry.at, now.value)}</time>
          </li>
        ),
      )}
    </ol>
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
  const others = command.authors.filter((name) => name !== command.actor)
  return (
    <li>
      <button
        class="command"
        data-testid="timeline-entry"
        data-seq={command.number}
        onClick={() => void jump()}
      >
        <code class="command-text cut">{sanitize(command.text, 300)}</code>
        <span class="command-about">
          {command.actor && <ActorName name={command.actor} actor={actor} />}
          {others.length > 0 && <span class="faint">with {sanitize(others.join(', '), 80)}</span>}
          <span class="grow" />
          <Outcome command={command} over={controller.handle.link.value.at === 'ended'} />
          <time class="faint">{clock(command.beganAt, now.value)}</time>
        </span>
      </button>
    </li>
  )
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
