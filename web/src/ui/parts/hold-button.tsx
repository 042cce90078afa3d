// A button that acts only after it was held down for a second, by pointer or by Enter or Space. Letting
// go, moving off it or losing the focus before that does nothing. By Enter it may also be pressed, and then confirmed. What the page does meanwhile ends no press: a notice that
// moves the button from under the finger, or a page too busy to draw.

import { useEffect, useRef, useState } from 'preact/hooks'
import type { ComponentChildren } from 'preact'
import { HOLD_MS, IDLE, isOff, progress, step, type Press, type PressEvent } from './hold-press'
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
  const timer = useRef(0)
  const box = useRef<DOMRect | null>(null) // where a pointer pressed it
  const asked = useRef(false) // Enter was pressed and let go: the next one confirms
  const [shown, setShown] = useState(0)

  const feed = (event: PressEvent, at = performance.now()): void => {
    const before = press.current
    const { press: next, fire } = step(before, event, at)
    press.current = next
    setShown(progress(next, at))
    if (next.phase !== before.phase) {
      clearTimeout(timer.current)
      if (next.phase === 'pressing') timer.current = window.setTimeout(() => feed('tick'), HOLD_MS + 1)
      else cancelAnimationFrame(frame.current)
    }
    if (fire) onHeld()
    else if (event === 'up' && before.phase === 'pressing') toast(`${label}: press and hold for a second`)
    if (next.phase === 'pressing' && before.phase !== 'pressing') draw()
  }
  const draw = (): void => {
    frame.current = requestAnimationFrame((at) => {
      setShown(progress(press.current, at))
      if (press.current.phase === 'pressing') draw()
    })
  }
  useEffect(
    () => () => {
      clearTimeout(timer.current)
      cancelAnimationFrame(frame.current)
    },
    [],
  )

  useEffect(() => {
    if (disabled) feed('leave') // a hand that still holds it must not act on what came since
  }, [disabled])

  const isTrigger = (event: KeyboardEvent): boolean => event.key === 'Enter' || event.key === ' '
  const keyDown = (event: KeyboardEvent): void => {
    if (!isTrigger(event)) {
      asked.current = false
      return
    }
    event.preventDefault()
    if (event.key === 'Enter' && asked.current && !event.repeat) {
      asked.current = false
      onHeld()
    } else feed('down', event.timeStamp)
  }
  const keyUp = (event: KeyboardEvent): void => {
    if (!isTrigger(event)) return
    const { phase, since } = press.current
    const early = event.key === 'Enter' && phase === 'pressing' && event.timeStamp - since < HOLD_MS
    feed(early ? 'leave' : 'up', event.timeStamp)
    if (!early) return
    asked.current = true
    toast(`${label}? Press Enter again to confirm, or hold it`)
  }
  return (
    <button
      type="button"
      class={`button hold ${extra} ${shown > 0 && shown < 1 ? 'is-pressing' : ''}`}
      style={{ '--progress': String(shown) }}
      data-testid={testid}
      aria-label={`${label}: press and hold for a second`}
      title="Press and hold for a second"
      disabled={disabled}
      onPointerDown={(event) => {
        if (event.button !== 0) return
        box.current = event.currentTarget.getBoundingClientRect()
        event.currentTarget.setPointerCapture(event.pointerId)
        feed('down', event.timeStamp)
      }}
      onPointerMove={(event) => {
        if (box.current && isOff(box.current, event.clientX, event.clientY)) feed('leave')
      }}
      onPointerUp={(event) => feed('up', event.timeStamp)}
      onPointerCancel={() => feed('leave')}
      onLostPointerCapture={() => {
        box.current = null
        feed('leave')
      }}
      onBlur={() => {
        asked.current = false
        if (!box.current) feed('leave')
      }}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={keyDown}
      onKeyUp={keyUp}
    >
      <span class="hold-fill" aria-hidden="true" />
      <span class="hold-face">{children}</span>
      <span class="hold-words" aria-hidden="true">
        Keep holding…
      </span>
    </button>
  )
}
