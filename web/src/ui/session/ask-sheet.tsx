// On a phone: what can be done about a turn that another has. Asking needs nobody's haste, and seizing has room to say what it does.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Dialog } from '../parts/dialog'
import { HoldButton } from '../parts/hold-button'
import { Icon } from '../parts/icon'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

interface Props {
  readonly controller: SessionController
  readonly mayAsk: boolean
  readonly maySeize: boolean
  readonly onClose: () => void
}

const MESSAGE_MAX = 200 // as the host keeps it

export function AskSheet({ controller, mayAsk, maySeize, onClose }: Props) {
  const { handle } = controller
  const message = useSignal('')
  const state = handle.turn.value
  const holder = sanitize(state?.turn.holder_name ?? '', 64)
  const settled = !state?.turn.holder || state.yours
  useEffect(() => {
    if (settled) onClose()
  }, [settled])
  const ask = (event: Event): void => {
    event.preventDefault()
    onClose()
    void controller.act(handle.requestTurn(message.value.trim()))
  }
  return (
    <Dialog title={`${holder} has the turn`} onClose={onClose} testid="ask-sheet">
      {mayAsk && !state?.waiting && (
        <form class="stack" onSubmit={ask}>
          <label class="field">
            <span>What for? (optional)</span>
            <input
              value={message.value}
              maxLength={MESSAGE_MAX}
              onInput={(event) => (message.value = event.currentTarget.value)}
            />
          </label>
          <button class="button primary big" data-testid="turn-request">
            Ask for the turn
          </button>
        </form>
      )}
      {state?.waiting && (
        <div class="stack">
          <p>You asked for it. {holder} sees that.</p>
          <button
            class="button big"
            data-testid="turn-withdraw"
            onClick={() => {
              onClose()
              void controller.act(handle.withdrawTurn())
            }}
          >
            Withdraw
          </button>
        </div>
      )}
      {maySeize && (
        <div class="acts-danger">
          <HoldButton
            class="danger big grow"
            testid="turn-seize"
            label="Seize the turn"
            onHeld={() => {
              onClose()
              void controller.seize(false)
            }}
          >
            <Icon name="hand" /> Seize the turn
          </HoldButton>
          <small class="faint">
            Press and hold. You have it at once; what {holder} types from then on is refused.
          </small>
        </div>
      )}
    </Dialog>
  )
}
