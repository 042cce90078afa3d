// What a state event changes in what is known of a session; the rest must be asked for.

import type { Ending, SessionInfo } from '../wire/generated/values'
import type { HostMessage } from '../wire/messages'

export function afterState(info: SessionInfo, event: HostMessage<'state'>): SessionInfo {
  const { state, waiting_line, full_screen, ending, at, shaped_by } = event
  const last = info.last_command
  // Between two commands there is a prompt: what ran before it does not ask what is asked behind it.
  const isOver = last !== null && last.ended_at === null && (state === 'prompt' || info.state === 'prompt')
  return {
    ...info,
    state,
    waiting_line,
    full_screen,
    shaped_by,
    ending: ending ?? info.ending,
    last_command: isOver ? { ...last, ended_at: at } : last,
  }
}

/** What an event of a move changes. */
export function afterMigration(info: SessionInfo, event: HostMessage<'migration'>): SessionInfo {
  const { phase, superposition, host, leaves, reason } = event
  const state = info.migration?.state ?? '' // in its host's own words, which no event has
  return { ...info, superposition, migration: { phase, state, leaves, host, reason } }
}

/** What a session is in after its ending. */
export function stateAfter({ lost, code, signal, checkpoint }: Ending): SessionInfo['state'] {
  if (lost !== null) return 'lost'
  return checkpoint && code === null && signal === null ? 'asleep' : 'ended'
}
