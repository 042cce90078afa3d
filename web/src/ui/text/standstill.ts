// What is safe, gone, unknown and next of a session that stands still. Only what is known: a host that lost its lease cannot say what
// another one does. Pure.

import type { LinkState, SessionInfo } from '../../hold/api'
import { inFlightText } from './session-state'

export type Fact = readonly [word: string, text: string]

export function standstill(link: LinkState, info: SessionInfo | null, machine: string): Fact[] {
  if (link.at === 'fenced') return fenced(info, machine)
  if (link.at === 'ended' && typeof link.ending?.lost === 'string') return lost(info, link.ending.successor)
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

function lost(info: SessionInfo | null, successor: string): Fact[] {
  const facts: Fact[] = [
    ['Survived', 'Its last screen, and the record of who did what.'],
    ['Gone', 'Its processes, and what they had in memory.'],
    ['Unknown', `Whether what was under way took effect. ${inFlightText(info?.in_flight)}`],
  ]
  if (successor) facts.push(['Next', `It is followed by ${successor}.`])
  return facts
}
