import { expect, test } from 'vitest'
import { HOLD_MS, IDLE, isOff, progress, step, type PressEvent } from '../../src/ui/parts/hold-press'

/** Runs events with their times; gives the times at which it fired. */
function run(...events: [PressEvent, number][]): number[] {
  const fired: number[] = []
  let press = IDLE
  for (const [event, at] of events) {
    const next = step(press, event, at)
    press = next.press
    if (next.fire) fired.push(at)
  }
  return fired
}

test('it acts when it was held for a second, and not a moment sooner', () => {
  expect(run(['down', 0], ['tick', HOLD_MS - 1])).toEqual([])
  expect(run(['down', 0], ['tick', HOLD_MS])).toEqual([HOLD_MS])
})

test('letting go or moving off before that does nothing', () => {
  expect(run(['down', 0], ['up', 900], ['tick', 2000])).toEqual([])
  expect(run(['down', 0], ['leave', 900], ['tick', 2000])).toEqual([])
})

test('it acts at the end of a press that nobody looked at meanwhile', () => {
  expect(run(['down', 0], ['up', HOLD_MS])).toEqual([HOLD_MS])
  expect(run(['down', 0], ['tick', 1000], ['up', 1100])).toEqual([1000]) // and not once more
  expect(run(['up', 5000])).toEqual([])
})

test('a finger is off what it pressed when it went, and not when that was moved', () => {
  const box = { left: 100, top: 500, right: 300, bottom: 544 }
  expect(isOff(box, 200, 522)).toBe(false)
  expect(isOff(box, 200, 550)).toBe(false) // fingers tremble
  expect(isOff(box, 200, 600)).toBe(true)
  expect(isOff(box, 40, 522)).toBe(true)
})

test('two short presses are no long one', () => {
  expect(run(['down', 0], ['up', 600], ['down', 700], ['tick', 1300])).toEqual([])
})

test('it acts once per press, however long it is held', () => {
  expect(run(['down', 0], ['tick', 1000], ['tick', 1500], ['down', 1600], ['tick', 4000])).toEqual([1000])
})

test('a key that repeats does not start over', () => {
  expect(run(['down', 0], ['down', 500], ['tick', 1000])).toEqual([1000])
})

test('after it was let go it can act again', () => {
  expect(run(['down', 0], ['tick', 1000], ['up', 1100], ['down', 2000], ['tick', 3000])).toEqual([1000, 3000])
})

test('progress goes from nothing to all', () => {
  const { press } = step(IDLE, 'down', 100)
  expect([100, 600, 1100, 5000].map((at) => progress(press, at))).toEqual([0, 0.5, 1, 1])
  expect(progress(IDLE, 100)).toBe(0)
})
