import { describe, expect, test } from 'vitest'
import {
  clampOffset,
  fittingFont,
  follow,
  fontFor,
  FONT_MIN_PX,
  gridFor,
  restingOn,
  stepFont,
  zoomAt,
} from '../../src/ui/terminal/lens-geometry'

const CELL = { width: 0.6, height: 1.2 }
const PHONE = { width: 390, height: 600 }

describe('the font', () => {
  test('that fits shows every column', () => {
    const font = fittingFont({ cols: 80, rows: 24 }, PHONE, CELL, false)
    expect(font * CELL.width * 80).toBeLessThanOrEqual(PHONE.width)
    expect((font + 0.5) * CELL.width * 80).toBeGreaterThan(PHONE.width)
  })
  test('that fits the whole screen shows every row, too', () => {
    const flat = { width: 2000, height: 300 }
    const font = fittingFont({ cols: 80, rows: 50 }, flat, CELL, true)
    expect(font * CELL.height * 50).toBeLessThanOrEqual(300)
  })
  test('is never smaller than can be read at all', () => {
    expect(fittingFont({ cols: 1000, rows: 24 }, PHONE, CELL, false)).toBe(FONT_MIN_PX)
  })
  test('that fits is not larger than the preferred one, except on a desk, to fill the frame', () => {
    expect(fontFor('fit', 13, { cols: 20, rows: 5 }, PHONE, CELL, false)).toBe(13)
    expect(fontFor('fit', 13, { cols: 20, rows: 5 }, PHONE, CELL, true)).toBe(18)
    expect(fontFor('readable', 13, { cols: 500, rows: 5 }, PHONE, CELL, true)).toBe(13)
  })
  test('changes by whole half pixels', () => {
    expect(stepFont(13, 1.12)).toBe(14.5)
    expect(stepFont(5, 0.5)).toBe(FONT_MIN_PX)
  })
})

describe('the place', () => {
  const screen = { width: 800, height: 900 }
  test('never shows what is beside the screen', () => {
    expect(clampOffset({ x: 50, y: -9999 }, screen, PHONE)).toEqual({ x: 0, y: -300 })
    expect(clampOffset({ x: -50, y: -50 }, { width: 100, height: 100 }, PHONE)).toEqual({ x: 0, y: 0 })
  })
  test('follows the cursor to where it is seen', () => {
    const cursor = { x: 700, y: 880, width: 8, height: 16 }
    const { x, y } = follow({ x: 0, y: 0 }, cursor, screen, PHONE)
    expect(cursor.x + x).toBeGreaterThanOrEqual(0)
    expect(cursor.x + cursor.width + x).toBeLessThanOrEqual(PHONE.width)
    expect(cursor.y + cursor.height + y).toBeLessThanOrEqual(PHONE.height)
  })
  test('follows the cursor into the last corner and no further', () => {
    const corner = { x: 792, y: 884, width: 8, height: 16 }
    expect(follow({ x: 0, y: 0 }, corner, screen, PHONE)).toEqual({ x: 390 - 800, y: 600 - 900 })
  })
  test('does not move while the cursor is well in view', () => {
    const at = { x: -200, y: -100 }
    expect(follow(at, { x: 500, y: 300, width: 8, height: 16 }, screen, PHONE)).toEqual(at)
  })
  test('goes back to the beginning of a line that has just begun', () => {
    expect(follow({ x: -400, y: 0 }, { x: 16, y: 100, width: 8, height: 16 }, screen, PHONE).x).toBe(0)
  })
  test('keeps what is between the fingers there while zooming', () => {
    const after = { width: 1600, height: 1800 }
    const point = { x: 100, y: 200 }
    const before = { x: -50, y: -80 }
    const { x, y } = zoomAt(before, point, 2, after, PHONE)
    expect((point.x - x) / 2).toBeCloseTo(point.x - before.x)
    expect((point.y - y) / 2).toBeCloseTo(point.y - before.y)
  })
})

test('the size of one`s own is what fits into the pane, within what a terminal can be', () => {
  expect(gridFor({ width: 780, height: 312 }, 13, CELL)).toEqual({ cols: 100, rows: 20 })
  expect(gridFor({ width: 10, height: 10 }, 13, CELL)).toEqual({ cols: 20, rows: 5 })
})

test('a line that is asked about is the last one in the pane, wherever it is on the screen', () => {
  const line = (y: number) => ({ x: 0, y, width: 8, height: 16 })
  for (const y of [0, 160, 900]) {
    const bottom = y + 16 + restingOn(line(y), PHONE)
    expect(PHONE.height - bottom).toBeGreaterThanOrEqual(0)
    expect(PHONE.height - bottom).toBeLessThan(8)
  }
})
