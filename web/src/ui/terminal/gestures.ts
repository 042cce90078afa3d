// Fingers on the terminal: one pans and scrolls, two zoom, a tap asks for the keyboard or opens what it hits, a long
// press selects. xterm.js knows nothing of a lens, so touches are taken before they reach it. All points are of the pane.

interface GestureHooks {
  /** By so many pixels; what the lens cannot take is scrolled. */
  pan(dx: number, dy: number): void
  /** While two fingers are down: relative to the begin, around a point of the pane. */
  pinch(factor: number, x: number, y: number): void
  pinched(): void
  tap(x: number, y: number): void
  /** A finger stayed where it was put; what it does until it is lifted comes as `drag`. */
  press(x: number, y: number): void
  /** A finger was put down: true if that takes hold of something, which then is dragged. */
  grab(x: number, y: number): boolean
  drag(x: number, y: number): void
}

const TAP_MS = 350
const TAP_PX = 10
const PRESS_MS = 450 // as long as a phone's own long press

export function takeTouches(pane: HTMLElement, hooks: GestureHooks): () => void {
  let last: { x: number; y: number } | null = null
  let began = { x: 0, y: 0, at: 0 }
  let apart = 0
  let moved = false
  let dragging = false
  let pressing = 0 // the timer of a long press

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
      dragging = hooks.grab(last.x, last.y)
      if (!dragging) pressing = window.setTimeout(press, PRESS_MS)
    } else if (event.touches.length === 2) {
      clearTimeout(pressing)
      dragging = false
      apart = middle(event).apart
      moved = true
    }
  }
  const press = (): void => {
    if (moved) return
    dragging = true
    hooks.press(began.x, began.y)
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
    if (dragging) {
      hooks.drag(now.x, now.y)
      return
    }
    if (!moved && Math.hypot(now.x - began.x, now.y - began.y) < TAP_PX) return
    moved = true
    clearTimeout(pressing)
    hooks.pan(now.x - last.x, now.y - last.y)
    last = now
  }
  const end = (event: TouchEvent): void => {
    event.stopPropagation()
    clearTimeout(pressing)
    if (apart > 0 && event.touches.length < 2) {
      apart = 0
      hooks.pinched()
    }
    last = event.touches.length === 1 ? spot(event.touches[0]!) : null
    if (event.touches.length > 0 || moved) return
    // Otherwise the browser makes mouse events of it, which would begin a selection.
    event.preventDefault()
    if (dragging) dragging = false
    else if (event.type === 'touchend' && event.timeStamp - began.at < TAP_MS) hooks.tap(began.x, began.y)
  }
  const options = { capture: true, passive: false } as const
  pane.addEventListener('touchstart', start, options)
  pane.addEventListener('touchmove', move, options)
  pane.addEventListener('touchend', end, options)
  pane.addEventListener('touchcancel', end, options)
  return () => {
    clearTimeout(pressing)
    pane.removeEventListener('touchstart', start, options)
    pane.removeEventListener('touchmove', move, options)
    pane.removeEventListener('touchend', end, options)
    pane.removeEventListener('touchcancel', end, options)
  }
}
