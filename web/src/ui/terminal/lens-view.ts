// The lens on the page: keeps the terminal's font and place in the pane, follows the cursor, and lets
// fingers and wheel move it. The sums are in lens-geometry.ts.

import { signal } from '@preact/signals'
import { keep, recall } from '../parts/local'
import { takeTouches } from './gestures'
import {
  clampFont,
  clampOffset,
  fittingFont,
  follow,
  fontFor,
  gridFor,
  restingOn,
  stepFont,
  zoomAt,
  type Extent,
  type Grid,
  type LensMode,
  type Offset,
  type Point,
} from './lens-geometry'
import type { Screen } from './screen'

const READABLE_PX = 13
const LEGIBLE_PX = 9 // a screen that fits only smaller than this is first shown at the readable size
const MIDDLE = 0.05 // of the pane's height on either side of its middle: a cursor there moves no cards
const KEY = 'holdfast.font'

/** What fingers do beside moving the lens; points are of the stage. */
interface Fingers {
  tap(at: Point): void
  press(at: Point): void
  grab(at: Point): boolean
  drag(at: Point): void
}

export class LensView {
  readonly mode = signal<LensMode>('fit')
  readonly fontPx = signal(READABLE_PX)
  readonly overflows = signal(false) // part of the screen is outside the pane
  readonly cursorLow = signal(false) // the cursor is in the lower part of the pane: cards lie over the upper
  readonly away = signal(false) // the cursor is outside the pane
  readonly lineCut = signal(false) // a part of the cursor's line, as far as it is written, is outside the pane
  readonly place = signal<Offset>({ x: 0, y: 0 }) // where the screen is drawn, in whole pixels
  private offset: Offset = { x: 0, y: 0 }
  private following = true
  private resting = false // the cursor's line is the last one in the pane, also where there is room below
  private zoom = 1 // of a pinch that is not over
  private unscrolled = 0 // pixels that are no whole line yet
  private frame = 0
  private drawn = ''
  private readonly undo: (() => void)[] = []

  constructor(
    private readonly pane: HTMLElement,
    private readonly stage: HTMLElement,
    private readonly screen: Screen,
    private readonly whole: () => boolean, // fit the height, too: there is room for that on a desk
    private readonly docked: () => number, // pixels of height that cards took for a while: no reason for a smaller font
    fingers: Fingers,
  ) {
    const kept = Number(recall(KEY))
    this.preferred = kept ? clampFont(kept) : READABLE_PX
    const watcher = new ResizeObserver(() => this.fit())
    watcher.observe(pane)
    this.undo.push(() => watcher.disconnect())
    this.undo.push(
      takeTouches(pane, {
        pan: (dx, dy) => this.pan(dx, dy),
        pinch: (factor, x, y) => this.pinch(factor, x, y),
        pinched: () => this.pinched(),
        tap: (x, y) => fingers.tap(this.onStage(x, y)),
        press: (x, y) => fingers.press(this.onStage(x, y)),
        grab: (x, y) => fingers.grab(this.onStage(x, y)),
        drag: (x, y) => fingers.drag(this.onStage(x, y)),
      }),
    )
    const wheel = (event: WheelEvent): void => this.wheel(event)
    pane.addEventListener('wheel', wheel, { capture: true, passive: false })
    this.undo.push(() => pane.removeEventListener('wheel', wheel, { capture: true }))
  }

  private preferred: number // this device's readable size
  private pinchedPx = 0 // a size for a closer look at this session only; 0: none
  private chosen = false // the user picked a mode

  close(): void {
    cancelAnimationFrame(this.frame)
    for (const each of this.undo) each()
  }

  use(mode: LensMode): void {
    this.chosen = true
    this.pinchedPx = 0
    this.mode.value = mode
    this.following = true
    this.fit()
  }

  /** Larger or smaller by a step; that is then the readable size. */
  step(by: number): void {
    this.preferred = stepFont(this.fontPx.value, by)
    keep(KEY, String(this.preferred))
    this.use('readable')
  }

  /** The size this pane would have as a terminal of its own. */
  ownGrid(): Grid {
    return gridFor(this.room(), this.preferred, this.screen.cell())
  }

  /** Something was typed: the cursor is what matters again. If it is already, output brings the next look at it:
      a frame asked for here would come before the echo. */
  followCursor(): void {
    if (this.following) return
    this.following = true
    this.settle()
  }

  /** What is asked about the cursor's line stands right below the pane. */
  rest(on: boolean): void {
    this.resting = on
    this.settle()
  }

  /** To the top left of what is shown: something there is to be seen, and the cursor is elsewhere. */
  top(): void {
    this.following = false
    this.moveTo({ x: 0, y: 0 })
  }

  /** After output: at most once a frame. */
  settle(): void {
    cancelAnimationFrame(this.frame)
    this.frame = requestAnimationFrame(() => {
      if (this.following)
        this.moveTo(
          follow(this.offset, this.screen.cursor(), this.screen.extent(), this.room()),
          this.resting,
        )
      else this.moveTo(this.offset)
    })
  }

  /** Font and place for the pane as it is now. */
  fit(): void {
    const { width, height } = this.room()
    const room = { width, height: height + this.docked() }
    if (room.width < 40 || room.height < 20) return
    const grid = { cols: this.screen.term.cols, rows: this.screen.term.rows }
    const cell = this.screen.cell()
    if (!this.chosen) {
      this.mode.value = fittingFont(grid, room, cell, this.whole()) < LEGIBLE_PX ? 'readable' : 'fit'
    }
    let font = fontFor(this.mode.value, this.pinchedPx || this.preferred, grid, room, cell, this.whole())
    this.screen.font(font)
    // Cells are rounded to whole device pixels, so the sum can come out a little too wide.
    while (this.mode.value === 'fit' && font > clampFont(0) && this.tooLarge(room)) {
      font = clampFont(font - 0.5)
      this.screen.font(font)
    }
    this.fontPx.value = font
    this.settle()
  }

  private tooLarge(room: Extent): boolean {
    const drawn = this.screen.extent()
    return drawn.width > room.width || (this.whole() && drawn.height > room.height)
  }

  private room(): Extent {
    return { width: this.pane.clientWidth, height: this.pane.clientHeight }
  }

  private onStage(x: number, y: number): Point {
    return { x: x - this.offset.x, y: y - this.offset.y }
  }

  private pan(dx: number, dy: number): void {
    this.following = false
    const before = this.offset
    this.moveTo({ x: before.x + dx, y: before.y + dy })
    const rest = dy - (this.offset.y - before.y)
    // What the lens could not take goes to the scrollback, or to a program that wants the wheel.
    if (Math.abs(rest) >= 1) this.scroll(-rest)
  }

  private scroll(pixels: number): void {
    const { term } = this.screen
    if (term.buffer.active.type === 'normal' && term.modes.mouseTrackingMode === 'none') {
      this.unscrolled += pixels
      const lines = Math.trunc(this.unscrolled / this.screen.cursor().height)
      this.unscrolled -= lines * this.screen.cursor().height
      if (lines !== 0) term.scrollLines(lines)
      return
    }
    // The terminal makes of a wheel what the program wants: reports, or arrow keys.
    const box = this.pane.getBoundingClientRect()
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }
    const wheel = new WheelEvent('wheel', {
      deltaY: pixels,
      deltaMode: 0,
      bubbles: true,
      cancelable: true,
      ...at,
    })
    term.element?.dispatchEvent(wheel)
  }

  private pinch(factor: number, x: number, y: number): void {
    this.following = false
    const factorNow = clampFont(this.fontPx.value * factor) / this.fontPx.value
    const drawn = this.screen.extent()
    const after = { width: drawn.width * factorNow, height: drawn.height * factorNow }
    const offset = zoomAt(this.offset, { x, y }, factorNow / this.zoom, after, this.room())
    this.zoom = factorNow
    this.offset = offset
    this.draw()
  }

  /** The picture was stretched while the fingers moved; now the text is redrawn at that size. */
  private pinched(): void {
    const font = stepFont(this.fontPx.value, this.zoom)
    this.zoom = 1
    this.pinchedPx = font
    this.chosen = true
    this.mode.value = 'readable'
    this.fit()
  }

  private wheel(event: WheelEvent): void {
    if (!event.isTrusted) return
    if (event.ctrlKey) {
      event.preventDefault()
      event.stopPropagation()
      this.step(event.deltaY < 0 ? 1.1 : 1 / 1.1)
      return
    }
    if (!this.overflows.value) return
    const sideways = event.shiftKey ? event.deltaY : event.deltaX
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault()
      event.stopPropagation()
      this.following = false
      this.moveTo({ x: this.offset.x - sideways, y: this.offset.y })
    }
  }

  private moveTo(offset: Offset, resting = false): void {
    const within = clampOffset(offset, this.screen.extent(), this.room())
    this.offset = resting ? { ...within, y: restingOn(this.screen.cursor(), this.room()) } : within
    this.draw()
  }

  private draw(): void {
    const { x, y } = this.offset
    const drawn = this.screen.extent()
    const room = this.room()
    this.overflows.value = drawn.width > room.width + 1 || drawn.height > room.height + 1
    const cursor = this.screen.cursor()
    const outside = (at: number, size: number, space: number): boolean => at + size < 1 || at > space - 1
    this.lineCut.value = x < -1 || cursor.y + y < -1 || cursor.y + cursor.height + y > room.height + 1
    const down = (cursor.y + y + cursor.height / 2) / Math.max(1, room.height)
    if (Math.abs(down - 0.5) > MIDDLE) this.cursorLow.value = down > 0.5
    this.away.value =
      !this.following &&
      (outside(cursor.x + x, cursor.width, room.width) || outside(cursor.y + y, cursor.height, room.height))
    // Whole pixels: text on half a pixel is blurred.
    const at = { x: Math.round(x), y: Math.round(y) }
    const drawnAt = `translate(${at.x}px, ${at.y}px)` + (this.zoom === 1 ? '' : ` scale(${this.zoom})`)
    if (drawnAt === this.drawn) return
    this.drawn = drawnAt
    this.stage.style.transform = drawnAt
    this.place.value = at
  }
}
