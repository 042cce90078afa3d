// Keys that an on-screen keyboard lacks. Taps must not take the focus from the terminal, or the keyboard
// would close at each of them.

import type { SessionController } from './session-controller'
import type { NamedKey } from '../terminal/keys'

const KEYS: [NamedKey, string, string, string][] = [
  ['Left', '←', 'key-left', 'Left'],
  ['Up', '↑', 'key-up', 'Up'],
  ['Down', '↓', 'key-down', 'Down'],
  ['Right', '→', 'key-right', 'Right'],
]

export function KeyBar({ controller }: { controller: SessionController }) {
  const held = controller.modifiers.value
  const stay = (event: Event): void => event.preventDefault()
  return (
    <div
      class="key-bar"
      data-testid="key-bar"
      role="toolbar"
      aria-label="Keys"
      onPointerDown={stay}
      onMouseDown={stay}
    >
      <button data-testid="key-esc" onClick={() => controller.key('Esc')}>
        Esc
      </button>
      <button data-testid="key-tab" onClick={() => controller.key('Tab')}>
        Tab
      </button>
      <button data-testid="key-ctrl" aria-pressed={held.ctrl} onClick={() => controller.hold('ctrl')}>
        Ctrl
      </button>
      <button data-testid="key-ctrl-c" aria-label="Control C" onClick={() => controller.typed('\x03')}>
        ^C
      </button>
      {KEYS.map(([key, face, testid, label]) => (
        <button
          key={key}
          class="arrow"
          data-testid={testid}
          aria-label={label}
          onClick={() => controller.key(key)}
        >
          {face}
        </button>
      ))}
      <button data-testid="key-alt" aria-pressed={held.alt} onClick={() => controller.hold('alt')}>
        Alt
      </button>
      <button data-testid="key-paste" onClick={() => void pasteClipboard(controller)}>
        Paste
      </button>
    </div>
  )
}

/** One line goes straight in; what could run at once, or cannot be read, is looked at first. */
async function pasteClipboard(controller: SessionController): Promise<void> {
  let text = ''
  try {
    text = await navigator.clipboard.readText()
  } catch {
    // Not allowed here, or nothing that is text: the sheet has a field to paste into.
  }
  if (text === '' || text.includes('\n')) controller.pasteSheet.value = text
  else controller.paste(text)
}
