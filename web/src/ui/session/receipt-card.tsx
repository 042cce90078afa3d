// The receipt of a seizure or a halt: what had happened by then. It undoes nothing.

import { Icon } from '../parts/icon'
import { now } from '../parts/clock'
import { ago, took } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

/** The host's words are the end of a line at a terminal; here they stand alone. */
function sentence(text: string): string {
  return text && `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

export function ReceiptCard({ controller }: { controller: SessionController }) {
  const receipt = controller.receipt.value
  if (!receipt) return null
  const halted = receipt.scope !== ''
  const yours = controller.handle.turn.value?.yours ?? false
  return (
    <section class="card receipt" aria-label="Receipt" data-testid="receipt">
      <header class="row">
        <strong>
          {yours && !halted
            ? 'You seized the turn'
            : halted && receipt.frozen
              ? 'Halted'
              : halted
                ? 'Not everything is frozen'
                : 'Done'}
        </strong>
        <span class="grow" />
        <button
          class="icon-button small"
          aria-label="Close"
          onClick={() => (controller.receipt.value = null)}
        >
          <Icon name="close" />
        </button>
      </header>
      <p>
        {receipt.before ? `${sanitize(receipt.before, 64)} held the turn. ` : 'Nobody held the turn. '}
        {halted && receipt.frozen && `${receipt.tasks} threads frozen in ${took(receipt.seconds)}. `}
        {halted &&
          !receipt.frozen &&
          `Still running: ${receipt.running.join(', ') || 'unknown'}. Input is refused. `}
        {receipt.last_input_at !== null &&
          `Last input to reach the terminal: ${sanitize(receipt.last_input_by, 64)}, ${ago(receipt.last_input_at, now.value)}. `}
        {receipt.unrecorded && `The journal may not have this: ${sanitize(receipt.unrecorded, 200)}. `}
      </p>
      <p class="faint">
        Journal record {receipt.journal_seq}. What happened before it cannot be undone.{' '}
        {sentence(sanitize(receipt.caveat))}
      </p>
    </section>
  )
}
