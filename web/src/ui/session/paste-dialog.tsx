// Large pastes: asked about before, shown while they go.

import { Dialog } from '../parts/dialog'
import { bytesText } from './process-tree'
import type { SessionController } from './session-controller'

export function PasteDialog({ controller }: { controller: SessionController }) {
  const text = controller.pasteAsk.value
  if (text === null) return null
  const close = (): void => {
    controller.pasteAsk.value = null
  }
  const lines = text.split('\n').length
  return (
    <Dialog title="Paste a large text?" onClose={close}>
      <p>
        {bytesText(new TextEncoder().encode(text).length)} in {lines} {lines === 1 ? 'line' : 'lines'} will be
        typed into the session.
      </p>
      <pre class="paste-begin">{text.slice(0, 300)}…</pre>
      <div class="dialog-foot end row">
        <button class="button" onClick={close}>
          Cancel
        </button>
        <button
          class="button primary"
          data-testid="paste-confirm"
          onClick={() => void controller.pasteNow(text)}
        >
          Paste
        </button>
      </div>
    </Dialog>
  )
}

export function PasteProgress({ controller }: { controller: SessionController }) {
  const state = controller.pasting.value
  if (!state || state.total === 0) return null
  return (
    <p class="hint" role="status" data-testid="paste-progress">
      Pasting: {Math.floor((100 * state.sent) / state.total)} %
      <progress value={state.sent} max={state.total} />
    </p>
  )
}
