// Keys that an on-screen keyboard lacks. Taps must not take the focus from the terminal, or the keyboard
// would close at each of them.

import type { Desk } from './desk'
import type { NamedKey } from '../terminal/keys'
import { say } from '../parts/toast'

const KEYS: [NamedKey, string, string, string][] = [
  ['Left', '←', 'key-left', 'Left'],
  ['Up', '↑', 'key-up', 'Up'],
  ['Down', '↓', 'key-down', 'Down'],
  ['Right', '→', 'key-right', 'Right'],
]

export function KeyBar({ desk }: { desk: Desk }) {
  const held = desk.modifiers.value
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
      <button data-testid="key-esc" onClick={() => desk.key('Esc')}>
        Esc
      </button>
      <button data-testid="key-tab" onClick={() => desk.key('Tab')}>
        Tab
      </button>
      <button data-testid="key-ctrl" aria-pressed={held.ctrl} onClick={() => desk.hold('ctrl')}>
        Ctrl
      </button>
      <button data-testid="key-alt" aria-pressed={held.alt} onClick={() => desk.hold('alt')}>
        Alt
      </button>
      {KEYS.map(([key, face, testid, label]) => (
        <button key={key} class="arrow" data-testid={testid} aria-label={label} onClick={() => desk.key(key)}>
          {face}
        </button>
      ))}
      <button data-testid="key-ctrl-c" aria-label="Control C" onClick={() => desk.typed('\x03')}>
        ^C
      </button>
      <button data-testid="key-paste" onClick={() => void pasteClipboard(desk)}>
        Paste
      </button>
    </div>
  )
}

async function pasteClipboard(desk: Desk): Promise<void> {
  try {
    desk.paste(await navigator.clipboard.readText())
  } catch {
    say('The browser blocked reading the clipboard. Long-press in the answer field to paste there.')
  }
}
