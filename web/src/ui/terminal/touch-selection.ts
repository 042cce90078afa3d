// Selecting text with a finger: a long press takes the word, dragging goes on from there, and two handles
// move its ends afterwards. The terminal keeps the selection itself, so a mouse can go on where a finger stopped.

import type { IDisposable } from '@xterm/xterm'
import { cellCount, reaching, wordAround, type Cell, type CellRange } from './cell-range'
import type { Extent, Point } from './lens-geometry'
import type { Screen } from './screen'

const HANDLE_REACH_PX = 28 // a finger's width around the handle's middle

export class TouchSelection {
  private fixed: CellRange | null = null // stays selected wherever the finger goes
  private aside: Point = { x: 0, y: 0 } // from the finger to the middle of the cell that it drags
  private byTouch = false // handles are for a finger's selection
  private readonly handles: readonly [HTMLElement, HTMLElement]
  private readonly undo: IDisposable[]

  constructor(
    private readonly screen: Screen,
    stage: HTMLElement,
  ) {
    const made = (): HTMLElement => {
      const handle = document.createElement('span')
      handle.className = 'select-handle'
      handle.setAttribute('aria-hidden', 'true')
      handle.hidden = true
      stage.append(handle)
      return handle
    }
    this.handles = [made(), made()]
    const { term } = screen
    this.undo = [term.onSelectionChange(() => this.draw()), term.onRender(() => this.draw())]
  }

  close(): void {
    for (const each of this.undo) each.dispose()
    for (const handle of this.handles) handle.remove()
  }

  get active(): boolean {
    return this.byTouch && this.screen.term.hasSelection()
  }

  /** All points are of the stage: pixels from the top left of what is drawn. */
  press(at: Point): void {
    const cell = this.cellAt(at)
    const { first, last } = wordAround(this.screen.cells(cell.y), cell.x)
    this.fixed = { from: { x: first, y: cell.y }, to: { x: last, y: cell.y } }
    this.aside = { x: 0, y: 0 }
    this.byTouch = true
    this.select(this.fixed)
  }

  /** Takes hold of the handle under the finger, if there is one. */
  grab(at: Point): boolean {
    const ends = this.active ? this.ends() : null
    if (!ends) return false
    const cell = this.cell()
    const spots = this.spots(ends)
    const far = spots.map((spot) => Math.hypot(spot.x - at.x, spot.y + cell.height / 2 - at.y))
    const nearest = far[0]! < far[1]! ? 0 : 1
    if (far[nearest]! > HANDLE_REACH_PX) return false
    const moving = nearest === 0 ? ends.from : ends.to
    const stays = nearest === 0 ? ends.to : ends.from
    this.fixed = { from: stays, to: stays }
    const { viewportY } = this.screen.term.buffer.active
    this.aside = {
      x: (moving.x + 0.5) * cell.width - at.x,
      y: (moving.y - viewportY + 0.5) * cell.height - at.y,
    }
    return true
  }

  drag(at: Point): void {
    if (!this.fixed) return
    this.select(reaching(this.fixed, this.cellAt({ x: at.x + this.aside.x, y: at.y + this.aside.y })))
  }

  /** Whole lines, as the program printed them: with what was wrapped. */
  wholeLines(): void {
    const ends = this.ends()
    if (!ends) return
    const { term } = this.screen
    let first = ends.from.y
    let last = ends.to.y
    while (first > 0 && term.buffer.active.getLine(first)?.isWrapped) first -= 1
    while (term.buffer.active.getLine(last + 1)?.isWrapped) last += 1
    this.select({ from: { x: 0, y: first }, to: { x: term.cols - 1, y: last } })
  }

  clear(): void {
    this.byTouch = false
    this.screen.term.clearSelection()
  }

  private select(range: CellRange): void {
    const { term } = this.screen
    term.select(range.from.x, range.from.y, cellCount(range, term.cols))
  }

  private ends(): CellRange | null {
    const range = this.screen.term.getSelectionPosition()
    if (!range) return null
    return { from: range.start, to: { x: Math.max(0, range.end.x - 1), y: range.end.y } }
  }

  private cell(): Extent {
    const { width, height } = this.screen.cursor()
    return { width, height }
  }

  private cellAt({ x, y }: Point): Cell {
    const { term } = this.screen
    const { width, height } = this.cell()
    const within = (value: number, count: number): number =>
      Math.min(count - 1, Math.max(0, Math.floor(value)))
    return {
      x: within(x / width, term.cols),
      y: within(y / height, term.rows) + term.buffer.active.viewportY,
    }
  }

  /** Where the handles hang: below the left edge of the first cell and the right edge of the last. */
  private spots({ from, to }: CellRange): [Point, Point] {
    const { width, height } = this.cell()
    const { viewportY } = this.screen.term.buffer.active
    return [
      { x: from.x * width, y: (from.y - viewportY + 1) * height },
      { x: (to.x + 1) * width, y: (to.y - viewportY + 1) * height },
    ]
  }

  private draw(): void {
    const ends = this.active ? this.ends() : null
    if (!this.screen.term.hasSelection()) this.byTouch = false
    const lowest = this.screen.term.rows * this.cell().height
    this.handles.forEach((handle, index) => {
      const spot = ends && this.spots(ends)[index]!
      handle.hidden = !spot || spot.y <= 0 || spot.y > lowest + 1
      if (spot && !handle.hidden) handle.style.transform = `translate(${spot.x}px, ${spot.y}px)`
    })
  }
}
