// Shown to a returning operator before the first key: what others did meanwhile, and what changed in the shell.

import type { Handoff } from '../../hold/api'
import { ActorName } from '../parts/labels'
import { Icon } from '../parts/icon'
import { now } from '../parts/clock'
import { ago, took } from '../text/durations'
import { changeLine } from '../text/handoff'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

const COMMANDS_SHOWN = 6
const CHANGES_SHOWN = 6

export function CatchUpCard({ controller }: { controller: SessionController }) {
  const handoff = controller.catchUp.value
  if (!handoff) return null
  const close = (): void => {
    controller.catchUp.value = null
    controller.screen?.term.focus()
  }
  return (
    <section class="card catch-up" data-testid="catch-up" aria-label="While you were away">
      <header class="row">
        <strong>While you were away</strong>
        <span class="faint">{handoff.since_at !== null && `since ${ago(handoff.since_at, now.value)}`}</span>
        <span class="grow" />
        <button class="icon-button small" data-testid="catch-up-close" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <Unsubmitted handoff={handoff} />
      <Commands controller={controller} handoff={handoff} />
      <Changes handoff={handoff} />
      <p class="faint catch-up-foot">{footText(handoff)}</p>
    </section>
  )
}

function Unsubmitted({ handoff }: { handoff: Handoff }) {
  const by = sanitize(handoff.unsubmitted_by.join(', ') || 'someone', 80)
  if (!handoff.unsubmitted_known) {
    return <p class="warning">There may be text by {by} at the prompt; the shell did not report it.</p>
  }
  if (!handoff.unsubmitted) return null
  return (
    <p class="warning">
      Typed at the prompt by {by}, not submitted: <code>{sanitize(handoff.unsubmitted, 200)}</code>
    </p>
  )
}

function Commands({ controller, handoff }: { controller: SessionController; handoff: Handoff }) {
  const shown = handoff.commands.slice(-COMMANDS_SHOWN)
  const more = handoff.commands.length - shown.length + handoff.commands_left_out
  if (shown.length === 0) return null
  const actors = controller.handle.actors.value
  return (
    <ul class="catch-up-commands">
      {more > 0 && <li class="faint">{more} earlier commands</li>}
      {shown.map((command) => {
        const actor = actors.find((one) => one.name === command.actor)
        return (
          <li key={command.seq}>
            <ActorName name={command.actor || 'nobody'} actor={actor} />
            <code class="grow cut">{sanitize(command.text, 120)}</code>
            <span class={command.status ? 'tone-danger' : 'faint'}>
              {command.status === null
                ? 'running'
                : `${command.status === 0 ? 'ok' : `status ${command.status}`} · ${took((command.ended_at ?? command.began_at) - command.began_at)}`}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

function Changes({ handoff }: { handoff: Handoff }) {
  if (!handoff.changes_known || handoff.changes.length === 0) return null
  const shown = handoff.changes.slice(0, CHANGES_SHOWN)
  return (
    <>
      <h3>Changed in the shell</h3>
      <ul class="catch-up-changes mono">
        {shown.map((change) => (
          <li key={`${change.kind}${change.name}`}>{changeLine(change)}</li>
        ))}
        {handoff.changes.length > shown.length && (
          <li class="faint">and {handoff.changes.length - shown.length} more</li>
        )}
      </ul>
    </>
  )
}

function footText(handoff: Handoff): string {
  const moves = handoff.moves.length
  const said = [
    moves > 0 ? `the turn moved ${moves === 1 ? 'once' : `${moves} times`}` : '',
    handoff.refused > 0 ? `${handoff.refused} refused` : '',
    handoff.blind_bytes > 0 ? `${handoff.blind_bytes} bytes typed blind, not recorded` : '',
    handoff.jobs.length > 0
      ? `background jobs: ${handoff.jobs.map((job) => sanitize(job, 60)).join(', ')}`
      : '',
    `directory ${sanitize(handoff.cwd, 120)}`,
  ]
  return said.filter(Boolean).join(' · ')
}
