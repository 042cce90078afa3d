// What is safe, gone, unknown and next of a session that stands still. Only what is known: a host that lost its lease cannot say what
// another one does. Pure.

import type { CheckpointInfo, Ending, LastKnown, LinkState, SessionInfo } from '../../hold/api'
import { whenAndWho } from './checkpoints'
import { age } from './durations'
import { inFlightText, isAsleep, shownState, stateText } from './session-state'

export type Fact = readonly [word: string, text: string]

/** What this page can do about it, and what it knows of the checkpoint that the session would come back from. */
export interface WayBack {
  readonly restores: boolean
  readonly revives: boolean
  readonly checkpoint: CheckpointInfo | null
  readonly now: number
}

const NONE: WayBack = { restores: false, revives: false, checkpoint: null, now: 0 }

export function standstill(
  link: LinkState,
  info: SessionInfo | null,
  machine: string,
  way: WayBack = NONE,
): Fact[] {
  if (link.at === 'fenced') return fenced(info, machine)
  if (link.at !== 'ended' || !link.ending) return []
  if (link.ending.moved_to) return moved(link.ending.moved_to)
  if (isAsleep(link.ending)) return asleep(info, way)
  return typeof link.ending.lost === 'string' ? lost(info, link.ending, way) : []
}

function moved(to: string): Fact[] {
  return [
    ['Record', 'Unbroken: the same session, with the same history.'],
    ['Here', 'This copy never runs again. What was typed at the switch was handed over, once.'],
    ['Next', `It goes on on ${to}, in its next epoch.`],
  ]
}

const RESET = 'Connections to other machines: they are reset when it wakes, and each is named.'

function asleep(info: SessionInfo | null, { restores, checkpoint, now }: WayBack): Fact[] {
  return [
    ...(checkpoint ? ([['Checkpoint', whenAndWho(checkpoint, now)]] as const) : []),
    [
      'Kept',
      'Its processes with their memory and open files, what waits to be read, its screen and its record.',
    ],
    ['Gone', RESET],
    [
      'Next',
      restores
        ? 'Wake brings it back here, under the same id.'
        : `It needs the right \`checkpoint\` to wake it, or \`hold restore ${info?.name ?? 'NAME'}\` on the machine.`,
    ],
  ]
}

function fenced(info: SessionInfo | null, machine: string): Fact[] {
  const lease = info?.lease
  if (lease?.state === 'taken') {
    const epoch = lease.later_epoch > 0 ? ` in epoch ${lease.later_epoch}` : ''
    return [
      ['Safe', 'This copy is frozen for good. Nothing runs twice.'],
      ['Next', `Another host has the session${epoch}: it goes on there. Here it can be read, and ended.`],
    ]
  }
  return [
    ['Safe', 'Its processes are frozen. What is typed now is refused, so nothing runs twice.'],
    [
      'Next',
      lease?.why
        ? `It is held back: ${lease.why}.`
        : `It goes on by itself when ${machine} holds the lease again. This page keeps trying.`,
    ],
  ]
}

function lost(info: SessionInfo | null, { successor, cause }: Ending, way: WayBack): Fact[] {
  const checkpoint = cause?.checkpoint ?? ''
  const last = info?.last_known
  const facts: Fact[] = [
    ['Survived', `Its last screen, ${checkpoint && 'its last checkpoint, '}and the record of who did what.`],
    [
      'Gone',
      checkpoint
        ? 'What its processes did after that checkpoint.'
        : 'Its processes, and what they had in memory.',
    ],
    ['Unknown', `Whether what was under way took effect. ${inFlightText(info?.in_flight)}`],
  ]
  if (way.checkpoint) facts.splice(1, 0, ['Checkpoint', whenAndWho(way.checkpoint, way.now)])
  if (last) facts.splice(1, 0, ['It was', lastKnownText(last, info.ended_at)])
  if (last && last.held.length > 0)
    facts.push(['Not done', `${last.held.map((one) => one.text).join('; ')}: it waited for approval.`])
  facts.push(['Next', nextText(info, successor, checkpoint, way)])
  return facts
}

/** As its host last wrote it down, which was some seconds before. */
function lastKnownText({ state, cwd, jobs, present, at }: LastKnown, lostAt: number | null): string {
  const before = lostAt !== null && lostAt > at ? `, ${age(lostAt - at)} before it was lost` : ''
  const said = [
    `${stateText(shownState(state, null)).word} in ${cwd}`,
    jobs.length > 0 ? `with jobs: ${jobs.join(', ')}` : '',
    present.length > 0 ? `attached: ${present.map(({ name }) => name).join(', ')}` : '',
  ]
  return said.filter(Boolean).join('; ') + before + '.'
}

function nextText(info: SessionInfo | null, successor: string, checkpoint: string, way: WayBack): string {
  if (successor) return `It is followed by ${successor}, a session of its own.`
  const anew =
    'Start a successor runs its command again in the same directory, as a session of its own; no process comes back.'
  if (checkpoint && way.restores)
    return `Restore brings its processes back as they were then, under its id. Connections to other machines are reset.${way.revives ? ` ${anew}` : ''}`
  if (checkpoint)
    return `\`hold restore ${info?.name ?? 'NAME'}\` on the machine brings it back from its last checkpoint, with its processes and under its id.`
  if (way.revives) return anew
  return `\`hold revive ${info?.name ?? 'NAME'}\` on the machine starts one that follows it: the same command, directory and environment. No process comes back.`
}
