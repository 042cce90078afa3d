// Fingers on the terminal: one pans and scrolls, two zoom, a tap asks for the keyboard. xterm.js knows
// nothing of a lens, so touches are taken before they reach it.

interface GestureHooks {
  /** By so many pixels; what the lens cannot take is scrolled. */
  pan(dx: number, dy: number): void
  /** While two fingers are down: relative to the begin, around a point of the pane. */
  pinch(factor: number, x: number, y: number): void
  pinched(): void
  tap(): void
}

const TAP_MS = 350
const TAP_PX = 10

export function takeTouches(pane: HTMLElement, hooks: GestureHooks): () => void {
  let last: { x: number; y: number } | null = null
  let began = { x: 0, y: 0, at: 0 }
  let apart = 0
  let moved = false

  const spot = (touch: Touch): { x: number; y: number } => {
    const box = pane.getBoundingClientRect()
    return { x: touch.clientX - box.left, y: touch.clientY - box.top }
  }
  const middle = (event: TouchEvent): { x: number; y: number; apart: number } => {
    const one = spot(event.touches[0]!)
    const two = spot(event.touches[1]!)
    return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) }
  }
  const start = (event: TouchEvent): void => {
    event.stopPropagation()
    if (event.touches.length === 1) {
      last = spot(event.touches[0]!)
      began = { ...last, at: event.timeStamp }
      moved = false
    } else if (event.touches.length === 2) {
      apart = middle(event).apart
      moved = true
    }
  }
  const move = (event: TouchEvent): void => {
    event.preventDefault()
    event.stopPropagation()
    if (event.touches.length >= 2 && apart > 0) {
      const now = middle(event)
      hooks.pinch(now.apart / apart, now.x, now.y)
      return
    }
    const now = spot(event.touches[0]!)
    if (!last) return
    if (!moved && Math.hypot(now.x - began.x, now.y - began.y) < TAP_PX) return
    moved = true
    hooks.pan(now.x - last.x, now.y - last.y)
    last = now
  }
  const end = (event: TouchEvent): void => {
    event.stopPropagation()
    if (apart > 0 && event.touches.length < 2) {
      apart = 0
      hooks.pinched()
    }
    last = event.touches.length === 1 ? spot(event.touches[0]!) : null
    if (event.touches.length > 0 || moved) return
    // Otherwise the browser makes mouse events of it, which would begin a selection.
    event.preventDefault()
    if (event.timeStamp - began.at < TAP_MS) hooks.tap()
  }
  const options = { capture: true, passive: false } as const
  pane.addEventListener('touchstart', start, options)
  pane.addEventListener('touchmove', move, options)
  pane.addEventListener('touchend', end, options)
  pane.addEventListener('touchcancel', end, options)
  return () => {
    pane.removeEventListener('touchstart', start, options)
    pane.removeEventListener('touchmove', move, options)
    pane.removeEventListener('touchend', end, options)
    pane.removeEventListener('touchcancel', end, options)
  }
}
