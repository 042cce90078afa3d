// What is safe, gone, unknown and next of a session that stands still. Only what is known: a host that lost its lease cannot say what
// another one does. Pure.

import type { Ending, LastKnown, LinkState, SessionInfo } from '../../hold/api'
import { age } from './durations'
import { inFlightText, shownState, stateText } from './session-state'

export type Fact = readonly [word: string, text: string]

export function standstill(link: LinkState, info: SessionInfo | null, machine: string): Fact[] {
  if (link.at === 'fenced') return fenced(info, machine)
  if (link.at === 'ended' && typeof link.ending?.lost === 'string') return lost(info, link.ending)
  return []
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

function lost(info: SessionInfo | null, { successor, cause }: Ending): Fact[] {
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
  if (last) facts.splice(1, 0, ['It was', lastKnownText(last, info.ended_at)])
  if (last && last.held.length > 0)
    facts.push(['Not done', `${last.held.map((one) => one.text).join('; ')}: it waited for approval.`])
  facts.push(['Next', nextText(info, successor, checkpoint)])
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

function nextText(info: SessionInfo | null, successor: string, checkpoint: string): string {
  if (successor) return `It is followed by ${successor}, a session of its own.`
  if (checkpoint)
    return `\`hold restore ${info?.name ?? 'NAME'}\` on the machine brings it back from its last checkpoint, with its processes and under its id.`
  return `\`hold revive ${info?.name ?? 'NAME'}\` on the machine starts one that follows it: the same command, directory and environment. No process comes back.`
}
