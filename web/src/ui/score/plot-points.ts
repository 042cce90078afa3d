// Where the points of a plot lie: days from left to right, shares from bottom to top. Pure.

import type { DayScore } from '../../hold/api'
import { type Measure, outOf, share } from './score-words'

const DAY_MS = 86_400_000
const Z = 1.96 // of 95 per cent

export interface DayPoint {
  readonly day: string
  readonly at: number // from 0, the first day shown, to 1, the last
  readonly value: number
  readonly low: number // the band in which the true share lies with 95 per cent
  readonly high: number
}

/** The last `days` days up to `last`, in UTC as the host counts them: `2026-11-18`. */
export function daysUpTo(last: string, days: number): string[] {
  const end = Date.parse(last)
  return Array.from({ length: days }, (_, index) => utcDay(end - (days - 1 - index) * DAY_MS))
}

export function utcDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** Days without anything to measure have no point. */
export function points(measure: Measure, scores: readonly DayScore[], shown: readonly string[]): DayPoint[] {
  const place = new Map(shown.map((day, index) => [day, shown.length > 1 ? index / (shown.length - 1) : 1]))
  return scores.flatMap(({ day, totals }) => {
    const value = share(measure, totals)
    const at = place.get(day)
    return value === null || at === undefined
      ? []
      : [{ day, at, value, ...band(value, outOf(measure, totals)) }]
  })
}

/** Wilson's interval: it stays between 0 and 1, and says something of few actions too. */
export function band(share: number, count: number): { low: number; high: number } {
  const middle = share + (Z * Z) / (2 * count)
  const spread = Z * Math.sqrt((share * (1 - share)) / count + (Z * Z) / (4 * count * count))
  const scale = 1 + (Z * Z) / count
  return { low: Math.max(0, (middle - spread) / scale), high: Math.min(1, (middle + spread) / scale) }
}

/** The lowest share on the axis: a whole tenth under all points, so that small differences show. */
export function lowest(found: readonly DayPoint[]): number {
  const least = Math.min(1, ...found.map(({ value }) => value))
  return Math.max(0, Math.min(0.9, Math.floor(least * 10 - 1e-9) / 10))
}
