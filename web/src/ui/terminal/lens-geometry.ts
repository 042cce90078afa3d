// The lens: how a screen of a fixed number of columns and rows is looked at through a pane of any size.
// The session's size belongs to the turn holder; a small pane zooms and pans, it never asks the
// session to be smaller. Only numbers in here: pixels of the page, font sizes in pixels.

export interface Extent {
  readonly width: number
  readonly height: number
}

export interface Grid {
  readonly cols: number
  readonly rows: number
}

/** A place, in pixels from the top left of something. */
export interface Point {
  readonly x: number
  readonly y: number
}

/** The position of the top left corner of the screen, relative to the pane's; never positive. */
export interface Offset {
  readonly x: number
  readonly y: number
}

/** Cell size of the font at one pixel of font size. */
export interface CellRatio {
  readonly width: number
  readonly height: number
}

export type LensMode = 'fit' | 'readable'

export const FONT_MIN_PX = 5 // below that a line is grey, and a wide screen is panned instead
const FONT_MAX_PX = 32
const FILL_PX = 18 // larger than that, text is shouted
const UNDER_PX = 4 // between a line and what rests on it
const STEP_PX = 0.5 // half pixels: finer steps make the glyph cache grow without looking better

/** The largest font with which the whole width can be seen; with `whole`, the whole screen. */
export function fittingFont(grid: Grid, pane: Extent, cell: CellRatio, whole: boolean): number {
  const byWidth = pane.width / (grid.cols * cell.width)
  const byHeight = pane.height / (grid.rows * cell.height)
  return clampFont(Math.floor((whole ? Math.min(byWidth, byHeight) : byWidth) / STEP_PX) * STEP_PX)
}

/** The font of a mode. Fitting shrinks to the pane, and on a desk it also grows to fill it: a screen of 80 columns in a wide
    frame is otherwise mostly frame. */
export function fontFor(
  mode: LensMode,
  preferred: number,
  grid: Grid,
  pane: Extent,
  cell: CellRatio,
  whole: boolean,
): number {
  if (mode === 'readable') return clampFont(preferred)
  const largest = whole ? Math.max(preferred, FILL_PX) : preferred
  return Math.min(largest, fittingFont(grid, pane, cell, whole))
}

export function clampFont(px: number): number {
  return Math.min(FONT_MAX_PX, Math.max(FONT_MIN_PX, px))
}

export function stepFont(px: number, by: number): number {
  return clampFont(Math.round((px * by) / STEP_PX) * STEP_PX)
}

/** Keeps the screen from being pushed out of the pane. A screen that is smaller sits at the top left. */
export function clampOffset(offset: Offset, screen: Extent, pane: Extent): Offset {
  const within = (at: number, size: number, room: number): number =>
    Math.min(0, Math.max(Math.min(0, room - size), at)) || 0
  return {
    x: within(offset.x, screen.width, pane.width),
    y: within(offset.y, screen.height, pane.height),
  }
}

export interface Spot {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** The least move that brings the cursor into the pane with some room around it. */
export function follow(offset: Offset, cursor: Spot, screen: Extent, pane: Extent): Offset {
  const along = (at: number, from: number, size: number, room: number, margin: number): number => {
    const gap = Math.min(margin, Math.max(0, (room - size) / 2))
    if (from + at < gap) return gap - from
    if (from + size + at > room - gap) return room - gap - size - from
    return at
  }
  // A line is typed from left to right: its beginning is worth more than the room after the cursor.
  const x =
    cursor.x + cursor.width * 4 <= pane.width
      ? 0
      : along(offset.x, cursor.x, cursor.width, pane.width, cursor.width * 6)
  const y = along(offset.y, cursor.y, cursor.height, pane.height, cursor.height)
  return clampOffset({ x, y }, screen, pane)
}

/** The vertical offset at which the cursor's line is the last one in the pane. */
export function restingOn(cursor: Spot, pane: Extent): number {
  return Math.floor(pane.height - cursor.y - cursor.height - UNDER_PX)
}

/** The offset after a zoom by `factor` that keeps the point under the fingers where it is. */
export function zoomAt(
  offset: Offset,
  point: Point,
  factor: number,
  screenAfter: Extent,
  pane: Extent,
): Offset {
  return clampOffset(
    {
      x: point.x - (point.x - offset.x) * factor,
      y: point.y - (point.y - offset.y) * factor,
    },
    screenAfter,
    pane,
  )
}

/** How many columns and rows fit into the pane: the size to ask for with "use my size". */
export function gridFor(pane: Extent, font: number, cell: CellRatio): Grid {
  return {
    cols: Math.max(20, Math.min(1000, Math.floor(pane.width / (cell.width * font)))),
    rows: Math.max(5, Math.min(1000, Math.floor(pane.height / (cell.height * font)))),
  }
}
