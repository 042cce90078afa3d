import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LINGER_MS, DelayedCount } from '../../src/ui/session/delayed-count'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('what is gone soon is not shown', () => {
  const shown: number[] = []
  const delayed = new DelayedCount((value) => shown.push(value))
  for (let key = 0; key < 10; key++) {
    delayed.now(1)
    vi.advanceTimersByTime(LINGER_MS - 1)
    delayed.now(0)
  }
  expect(shown).toEqual([])
})

test('steady typing that is taken all the time is not shown', () => {
  const shown: number[] = []
  const delayed = new DelayedCount((value) => shown.push(value))
  for (let key = 0; key < 10; key++) {
    delayed.now(2)
    delayed.now(1)
    vi.advanceTimersByTime(LINGER_MS / 2)
  }
  expect(shown).toEqual([])
})

test('what stays is shown, as it is by then, and that it is gone at once', () => {
  const shown: number[] = []
  const delayed = new DelayedCount((value) => shown.push(value))
  delayed.now(1)
  vi.advanceTimersByTime(LINGER_MS / 2)
  delayed.now(3)
  vi.advanceTimersByTime(LINGER_MS / 2)
  delayed.now(2)
  delayed.now(0)
  expect(shown).toEqual([3, 2, 0])
})
