// A button that acts only after it was held down for a second, by pointer or by Enter or Space. Letting
// go, moving off it or losing the focus before that does nothing.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { ComponentChildren } from 'preact'
import { IDLE, progress, step, type Press, type PressEvent } from './hold-press'
import { toast } from './toast'

interface Props {
  readonly onHeld: () => void
  readonly children: ComponentChildren
  readonly label: string // says what happens, without "press and hold"
  readonly testid?: string
  readonly class?: string
  readonly disabled?: boolean
}

export function HoldButton({ onHeld, children, label, testid, class: extra = '', disabled }: Props) {
  const press = useRef<Press>(IDLE)
  const frame = useRef(0)
  const [shown, setShown] = useState(0)

  const feed = (event: PressEvent): void => {
    const at = performance.now()
    const { press: next, fire } = step(press.current, event, at)
    if (event === 'up' && press.current.phase === 'pressing') toast(`${label}: press and hold for a second`)
    press.current = next
    setShown(progress(next, at))
    cancelAnimationFrame(frame.current)
    if (next.phase === 'pressing') frame.current = requestAnimationFrame(() => feed('tick'))
    if (fire) onHeld()
  }
  useEffect(() => () => cancelAnimationFrame(frame.current), [])

  const isTrigger = (event: KeyboardEvent): boolean => event.key === 'Enter' || event.key === ' '
  return (
    <button
      type="button"
      class={`button hold ${extra} ${shown > 0 && shown < 1 ? 'is-pressing' : ''}`}
      style={{ '--progress': String(shown) }}
      data-testid={testid}
      aria-label={`${label}: press and hold for a second`}
      title="Press and hold for a second"
      disabled={disabled}
      onPointerDown={(event) => event.button === 0 && feed('down')}
      onPointerUp={() => feed('up')}
      onPointerLeave={() => feed('leave')}
      onPointerCancel={() => feed('leave')}
      onBlur={() => feed('leave')}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={(event) => {
        if (!isTrigger(event)) return
        event.preventDefault()
        feed('down')
      }}
      onKeyUp={(event) => isTrigger(event) && feed('up')}
    >
      <span class="hold-fill" aria-hidden="true" />
      <span class="hold-face">{children}</span>
    </button>
  )
}
