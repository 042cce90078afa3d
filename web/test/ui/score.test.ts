import { expect, test } from 'vitest'
import { parse, path } from '../../src/ui/route'
import { band, daysUpTo, lowest, points } from '../../src/ui/score/plot-points'
import { effectText, means, percent, share, summary } from '../../src/ui/score/score-words'
import { SCORE } from './fixtures'

const NOTHING = {
  actions: 2,
  valid: 0,
  measured: 0,
  success: 0,
  clean: 0,
  side_effects: 0,
  points: 0,
  scored: 2,
}

test('a share is of what was measured, and of nothing there is none', () => {
  const { totals } = SCORE
  expect(percent(share('valid', totals))).toBe('95.0 %')
  expect(percent(share('success', { ...totals, measured: 36 }))).toBe('100.0 %')
  expect(share('clean', NOTHING)).toBeNull()
  expect([percent(null), means('clean', NOTHING)]).toEqual(['–', 'nothing was measured'])
  expect(means('valid', NOTHING)).toBe('0 of 2 were well formed and allowed')
})

test('the page says where it was measured, what was not, and what policies judge by', () => {
  expect(summary(SCORE, 'box')).toBe('Measured on box. Policies judge by its last 20 actions: 95 per cent.')
  const late = { ...SCORE, totals: { ...SCORE.totals, measured: 37 } }
  expect(summary(late, 'box')).toContain('Of 1 action the effects are not known.')
  expect(summary({ ...SCORE, recent: null, recent_count: 0 }, 'box')).toContain(
    'None of its actions has a score',
  )
})

test('a day without actions has no point, and the last day is at the right edge', () => {
  const shown = daysUpTo('2026-03-02', 5)
  expect(shown).toEqual(['2026-02-26', '2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02'])
  const days = [
    { day: '2026-01-01', totals: SCORE.totals }, // before what is shown
    { day: '2026-02-26', totals: SCORE.totals },
    { day: '2026-03-01', totals: NOTHING }, // valid is known, clean is not
    { day: '2026-03-02', totals: SCORE.totals },
  ]
  expect(points('clean', days, shown).map(({ at }) => at)).toEqual([0, 1])
  expect(points('valid', days, shown).map(({ at, value }) => [at, value])).toEqual([
    [0, 0.95],
    [0.75, 0],
    [1, 0.95],
  ])
})

test('few actions say less than many, and no band leaves the plot', () => {
  const [few, many] = [band(1, 2), band(1, 2000)]
  expect(few.low).toBeLessThan(0.4)
  expect(many.low).toBeGreaterThan(0.99)
  expect([few.high, band(0, 3).low]).toEqual([1, 0])
  const at = (value: number) => ({ day: '', at: 0, value, low: 0, high: 1 })
  expect([lowest([]), lowest([at(0.97)]), lowest([at(0.42), at(1)]), lowest([at(0)])]).toEqual([
    0.9, 0.9, 0.4, 0,
  ])
})

test('what was not declared is said in words', () => {
  expect(effectText({ kind: 'file_created', what: '/x' })).toBe('created /x')
  expect(effectText({ kind: 'port_opened', what: '9229' })).toBe('listens on port 9229')
  expect(effectText({ kind: 'env', what: 'env FOO added' })).toBe('changed the shell: FOO added')
  expect(effectText({ kind: 'something_new', what: 'y' })).toBe('something new y')
})

test('a record has an address of its own', () => {
  const at = { page: 'score', machine: 'a b', actor: 'o/tto' } as const
  expect(parse(path(at))).toEqual(at)
})
