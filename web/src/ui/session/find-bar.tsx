// Search in the scrollback that this page has.

import { useEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Icon } from '../parts/icon'
import type { SessionController } from './session-controller'

export function FindBar({ controller }: { controller: SessionController }) {
  const field = useRef<HTMLInputElement>(null)
  const missing = useSignal(false)
  useEffect(() => field.current?.focus(), [])
  const find = (back: boolean): void => {
    const text = field.current?.value ?? ''
    const search = controller.screen?.search
    missing.value =
      text !== '' && search !== undefined && !(back ? search.findPrevious(text) : search.findNext(text))
  }
  const close = (): void => {
    controller.screen?.search.clearDecorations()
    controller.finding.value = false
    controller.screen?.term.focus()
  }
  return (
    <div class="find-bar row" role="search">
      <input
        ref={field}
        aria-label="Find in the scrollback"
        placeholder="Find"
        aria-invalid={missing.value}
        onInput={() => find(true)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') find(!event.shiftKey)
          if (event.key === 'Escape') close()
        }}
      />
      {missing.value && <span class="faint">not found</span>}
      <button class="icon-button small" aria-label="Close" onClick={close}>
        <Icon name="close" />
      </button>
    </div>
  )
}
