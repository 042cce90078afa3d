// Plots over days: the share of one measure with its band, and how many actions there were.

import type { DayScore } from '../../hold/api'
import { narrow } from '../parts/viewport'
import { type DayPoint, lowest, points } from './plot-points'
import { type Measure, count, percent, TITLES } from './score-words'

const HEIGHT = 98
const TOP = 10
const BOTTOM = 82

/** In its own units: a plot is drawn for the width it gets, so that its letters have the size of others. */
function frame(): { width: number; left: number; right: number } {
  return narrow.value ? { width: 318, left: 34, right: 262 } : { width: 1080, left: 56, right: 966 }
}

interface Props {
  readonly measure: Measure
  readonly days: readonly DayScore[]
  readonly shown: readonly string[]
}

export function SharePlot({ measure, days, shown }: Props) {
  const { width, left, right } = frame()
  const found = points(measure, days, shown)
  const least = lowest(found)
  const x = ({ at }: DayPoint): number => left + at * (right - left)
  const y = (value: number): number =>
    BOTTOM - ((Math.max(least, value) - least) / (1 - least)) * (BOTTOM - TOP)
  const line = found.map((one) => `${x(one)},${y(one.value)}`).join(' ')
  const around = [
    ...found.map((one) => `${x(one)},${y(one.high)}`),
    ...found.toReversed().map((one) => `${x(one)},${y(one.low)}`),
  ].join(' ')
  const last = found.at(-1)
  const title = TITLES[measure]
  return (
    <figure class="plot" data-testid={`plot-${measure}`} data-points={found.length}>
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={spoken(title, found)}>
        {[least, 1].map((value) => (
          <g key={value}>
            <line class="plot-grid" x1={left} x2={right} y1={y(value)} y2={y(value)} />
            <text x={left - 8} y={y(value) + 4} text-anchor="end">
              {Math.round(100 * value)}
            </text>
          </g>
        ))}
        {days.map((day) =>
          measure === 'clean' && day.totals.side_effects > 0 ? (
            <Mark key={day.day} at={found.find((one) => one.day === day.day)} x={x} />
          ) : null,
        )}
        <polygon class="plot-band" points={around} />
        <polyline class="plot-line" points={line} />
        {last && found.length === 1 && (
          <line class="plot-range" x1={x(last)} x2={x(last)} y1={y(last.high)} y2={y(last.low)} />
        )}
        {found.map((one) => (
          <circle key={one.day} class="plot-dot" cx={x(one)} cy={y(one.value)} r={one === last ? 4 : 2.5}>
            <title>{`${one.day}: ${percent(one.value)}`}</title>
          </circle>
        ))}
        {last && (
          <text class="plot-last" x={x(last) + 8} y={y(last.value) + 4}>
            {(100 * last.value).toFixed(1)}
          </text>
        )}
      </svg>
    </figure>
  )
}

/** A day on which something was done that nobody had declared. */
function Mark({ at, x }: { at: DayPoint | undefined; x: (point: DayPoint) => number }) {
  return at ? <line class="plot-mark" x1={x(at)} x2={x(at)} y1={TOP - 4} y2={BOTTOM + 4} /> : null
}

export function CountPlot({ days, shown }: { days: readonly DayScore[]; shown: readonly string[] }) {
  const { width, left, right } = frame()
  const most = Math.max(1, ...days.map(({ totals }) => totals.actions))
  const step = (right - left) / Math.max(1, shown.length - 1)
  const thick = Math.max(2, Math.min(18, step * 0.6))
  const acted = days.filter(({ day }) => shown.includes(day))
  return (
    <figure class="plot" data-testid="plot-actions" data-points={acted.length}>
      <figcaption>Actions</figcaption>
      <svg
        viewBox={`0 0 ${width} ${HEIGHT + 20}`}
        role="img"
        aria-label={`Actions: ${acted.length === 0 ? 'none' : `from ${shown[0]} to ${shown.at(-1)}, at most ${most} a day`}`}
      >
        <line class="plot-grid" x1={left} x2={right} y1={BOTTOM} y2={BOTTOM} />
        <text x={left - 8} y={TOP + 4} text-anchor="end">
          {most}
        </text>
        <text x={left - 8} y={BOTTOM + 4} text-anchor="end">
          0
        </text>
        {acted.map(({ day, totals }) => {
          const height = (totals.actions / most) * (BOTTOM - TOP)
          const at = left + shown.indexOf(day) * step
          return (
            <rect
              key={day}
              class="plot-bar"
              x={at - thick / 2}
              width={thick}
              y={BOTTOM - height}
              height={height}
            >
              <title>{`${day}: ${count(totals.actions, 'action')}`}</title>
            </rect>
          )
        })}
        <Dates shown={shown} left={left} right={right} />
      </svg>
    </figure>
  )
}

function Dates({ shown, left, right }: { shown: readonly string[]; left: number; right: number }) {
  const middle = shown[Math.floor((shown.length - 1) / 2)]!
  const y = HEIGHT + 14
  return (
    <>
      <text x={left} y={y}>
        {dayText(shown[0]!)}
      </text>
      <text x={(left + right) / 2} y={y} text-anchor="middle">
        {dayText(middle)}
      </text>
      <text x={right} y={y} text-anchor="end">
        {dayText(shown.at(-1)!)}
      </text>
    </>
  )
}

export function dayText(day: string): string {
  return new Date(day).toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })
}

function spoken(title: string, found: readonly DayPoint[]): string {
  const [first, last] = [found[0], found.at(-1)]
  if (!first || !last) return `${title}: nothing was measured`
  if (first === last) return `${title}: ${percent(last.value)} on ${last.day}`
  return `${title}: ${percent(first.value)} on ${first.day}, ${percent(last.value)} on ${last.day}`
}
