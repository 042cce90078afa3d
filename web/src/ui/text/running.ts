// What runs in a session, by whom and since when, from what its host says of it. Pure.

import type { SessionInfo } from '../../hold/api'
import { shownState } from './session-state'

/** The command that runs, with its actor; null at the prompt, and where none is reported. */
export function runningCommand(info: SessionInfo): SessionInfo['last_command'] {
  const last = info.last_command
  const runs = info.state !== 'prompt' && info.state !== 'asleep'
  return last && last.ended_at === null && runs ? last : null
}

/** What runs, as short as a list wants it. */
export function programOf(info: SessionInfo): string {
  return runningCommand(info)?.text ?? info.argv.join(' ')
}

/** Since when it is in its state, as far as it is known: nothing is printed while an answer is awaited. */
export function sinceOf(info: SessionInfo): number | null {
  switch (shownState(info.state, info.lease, info.full_screen)) {
    case 'input':
    case 'secret':
      return info.last_output_at
    case 'working':
    case 'in_use':
      return runningCommand(info)?.began_at ?? info.created_at
    case 'prompt':
      return info.last_command?.ended_at ?? info.created_at
    case 'ended':
    case 'lost':
      return info.ended_at
    default:
      return info.state_since
  }
}
