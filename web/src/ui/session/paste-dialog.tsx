// Pastes: on a phone into a sheet, where they can be read and changed before they go; large ones are asked about and
// shown while they go.

import { Dialog } from '../parts/dialog'
import { bytesText } from '../text/sizes'
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

export function PasteSheet({ controller }: { controller: SessionController }) {
  const text = controller.pasteSheet.value
  if (text === null) return null
  const close = (): void => {
    controller.pasteSheet.value = null
  }
  const lines = text.split('\n').length
  return (
    <Dialog title="Paste" onClose={close} testid="paste-sheet">
      <textarea
        class="mono paste-text"
        data-testid="paste-text"
        aria-label="Text to paste"
        placeholder="Long-press here and choose Paste"
        rows={6}
        autocapitalize="off"
        spellcheck={false}
        value={text}
        onInput={(event) => (controller.pasteSheet.value = event.currentTarget.value)}
      />
      <div class="dialog-foot row">
        <span class="faint grow">{text && (lines === 1 ? '1 line' : `${lines} lines`)}</span>
        <button class="button" onClick={close}>
          Cancel
        </button>
        <button
          class="button primary"
          data-testid="paste-send"
          disabled={text === ''}
          onClick={() => {
            close()
            controller.paste(text)
          }}
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
