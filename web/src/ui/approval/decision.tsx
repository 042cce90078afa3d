// Approve or deny: two buttons of one size. Denying is one press; approving is one press too, unless there is a reason to
// read closely. What is approved is what was read: the host is told which version that was, and refuses another one,
// which must be read again.

import { useSignal } from '@preact/signals'
import type { ApprovalCard, Machine } from '../../hold/api'
import { asHoldError } from '../../wire/errors'
import { useHold } from '../context'
import { HoldButton } from '../parts/hold-button'
import { Icon } from '../parts/icon'
import { toast, toastError, ToastPlace } from '../parts/toast'
import { sanitize } from '../text/sanitize'
import { hasApproved, quorumText, risksOf, whyNot } from './approval-words'

const NOTE_MAX_CHARS = 200

export function Decision({ card, machine }: { card: ApprovalCard; machine: Machine }) {
  const hold = useHold()
  const { info } = card
  const note = useSignal('')
  const busy = useSignal(false)
  const read = useSignal(info.version)
  const changed = info.version !== read.value

  const why = whyNot(info, machine)
  if (why) return <Foot>{`You cannot decide about this: ${why}.`}</Foot>
  if (machine.link !== 'online')
    return <Foot>The machine is not reached. What waits there keeps waiting.</Foot>
  if (hasApproved(info, machine)) return <Foot>{`You approved it: ${quorumText(info)}.`}</Foot>

  const decide = async (approve: boolean): Promise<void> => {
    if (busy.value) return
    busy.value = true
    try {
      const act = approve ? hold.approve : hold.deny
      const after = await act.call(hold, card.machine, info.id, note.value, read.value)
      if (after.status === 'pending') toast(`Your approval counts: ${quorumText(after)}`, 'good')
    } catch (error) {
      // It is shown as it is now, and that it must be read again.
      if (asHoldError(error).code === 'approval_changed')
        await hold.lookAtApprovals(card.machine).catch(toastError)
      else toastError(error)
    } finally {
      busy.value = false
    }
  }
  return (
    <footer class="approval-foot">
      {changed && (
        <p class="approval-again tone-attention" role="alert" data-testid="approval-again">
          <span>It changed while you looked. Read it again before you approve.</span>
          <button
            class="button small"
            data-testid="approval-read"
            onClick={() => (read.value = info.version)}
          >
            I have read it
          </button>
        </p>
      )}
      <ToastPlace />
      <label class="field">
        <span>A word for {sanitize(info.actor, 64)}, optional</span>
        <input
          data-testid="approval-note"
          maxLength={NOTE_MAX_CHARS}
          value={note.value}
          onInput={(event) => (note.value = event.currentTarget.value)}
        />
      </label>
      <div class="approval-acts">
        <button
          class="button big"
          data-testid="approval-deny"
          disabled={busy.value}
          onClick={() => void decide(false)}
        >
          <Icon name="close" /> Deny
        </button>
        {risksOf(info).length > 0 ? (
          <HoldButton
            class="big plain"
            testid="approval-approve"
            label="Hold to approve"
            disabled={busy.value || changed}
            onHeld={() => void decide(true)}
          >
            <Icon name="check" /> Hold to approve
          </HoldButton>
        ) : (
          <button
            class="button big"
            data-testid="approval-approve"
            disabled={busy.value || changed}
            onClick={() => void decide(true)}
          >
            <Icon name="check" /> Approve
          </button>
        )}
      </div>
      <p class="faint approval-means">
        You approve these exact characters, once. The policy judges it again before it happens.
      </p>
    </footer>
  )
}

function Foot({ children }: { children: string }) {
  return (
    <footer class="approval-foot">
      <p class="faint" role="status" data-testid="approval-why-not">
        {children}
      </p>
    </footer>
  )
}
