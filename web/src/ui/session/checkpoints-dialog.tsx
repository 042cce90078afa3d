// The checkpoints of a session, and a new one: with a note, and asleep afterwards if that is wanted.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { now } from '../parts/clock'
import { Dialog } from '../parts/dialog'
import { InlineCode } from '../parts/inline-code'
import { toast } from '../parts/toast'
import { madeText } from '../text/checkpoints'
import { ago, clock } from '../text/durations'
import { may } from '../text/rights'
import { sanitize } from '../text/sanitize'
import { CanMove } from './can-move'
import { ProgressBar, useHowFar } from './progress-bar'
import type { SessionController } from './session-controller'

interface Props {
  readonly controller: SessionController
  readonly onClose: () => void
}

export function CheckpointsDialog({ controller, onClose }: Props) {
  const { handle, checkpointing } = controller
  useEffect(() => void checkpointing.load(), [])
  const known = checkpointing.known.value
  const makes = handle.link.value.at === 'online' && may(handle.rights.value, 'checkpoint')
  return (
    <Dialog title="Checkpoints" onClose={onClose} testid="checkpoints">
      {makes && <Making controller={controller} onClose={onClose} />}
      {known === null ? (
        <p class="faint">Loading…</p>
      ) : known.length === 0 ? (
        <p class="faint">There are none yet.</p>
      ) : (
        <ul class="checkpoint-list" aria-label="Checkpoints, newest first">
          {known.map((one) => (
            <li key={one.id} data-testid="checkpoint">
              <strong title={`${clock(one.at, now.value)} · ${one.id}`}>{ago(one.at, now.value)}</strong>
              <span class="faint"> by {sanitize(one.actor, 64) || 'the host'}</span>
              {one.note && <span class="wrap"> “{sanitize(one.note, 300)}”</span>}
              <small class="faint">{madeText(one)}</small>
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  )
}

function Making({ controller, onClose }: Props) {
  const { handle, checkpointing } = controller
  const far = useHowFar(controller)
  const note = useSignal('')
  const end = useSignal(false)
  const since = checkpointing.since.value
  const made = checkpointing.made.value
  const failed = checkpointing.failed.value
  const make = async (): Promise<void> => {
    const ends = end.value
    const done = await checkpointing.make(note.value, ends)
    if (!done) return
    note.value = ''
    if (!ends) return
    onClose()
    toast(`Checkpoint made: ${madeText(done)}`, 'good')
  }
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        void make()
      }}
    >
      <p class="faint">
        Its processes are written to disk as they are. It stands still for a moment and runs on; keys typed
        meanwhile wait.
      </p>
      <CanMove controller={controller} />
      <label class="field">
        <span>Note</span>
        <input
          data-testid="checkpoint-note"
          placeholder="what it is for"
          maxLength={NOTE_MAX}
          value={note.value}
          onInput={(event) => (note.value = event.currentTarget.value)}
        />
      </label>
      {may(handle.rights.value, 'end') && (
        <label class="choice">
          <input
            type="checkbox"
            data-testid="checkpoint-end"
            checked={end.value}
            onChange={(event) => (end.value = event.currentTarget.checked)}
          />
          <span>
            <strong>Put it to sleep</strong>{' '}
            <span class="faint">nothing of it runs on, for everyone, until it is woken</span>
          </span>
        </label>
      )}
      {failed && (
        <p class="tone-danger wrap" role="alert" data-testid="checkpoint-failed">
          {`${capital(sanitize(failed.message, 300))}. `}
          <InlineCode text={capital(sanitize(failed.hint, 300))} />
        </p>
      )}
      <div class="dialog-foot row">
        <span class="faint grow" role="status" data-testid="checkpoint-progress">
          {since !== null ? (
            <ProgressBar label="Writing the checkpoint" far={far} since={since} />
          ) : (
            made && `Done: ${madeText(made)}`
          )}
        </span>
        <button class="button primary" data-testid="checkpoint-make" disabled={since !== null}>
          Checkpoint
        </button>
      </div>
    </form>
  )
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const NOTE_MAX = 200
