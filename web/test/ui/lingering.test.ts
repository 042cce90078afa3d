import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LINGER_MS, Lingering } from '../../src/ui/session/lingering'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('what is gone soon is not told', () => {
  const told: number[] = []
  const lingering = new Lingering((value) => told.push(value))
  for (let key = 0; key < 10; key++) {
    lingering.now(1)
    vi.advanceTimersByTime(LINGER_MS - 1)
    lingering.now(0)
  }
  expect(told).toEqual([])
})

test('steady typing that is taken all the time is not told', () => {
  const told: number[] = []
  const lingering = new Lingering((value) => told.push(value))
  for (let key = 0; key < 10; key++) {
    lingering.now(2)
    lingering.now(1)
    vi.advanceTimersByTime(LINGER_MS / 2)
  }
  expect(told).toEqual([])
})

test('what stays is told, as it is by then, and that it is gone at once', () => {
  const told: number[] = []
  const lingering = new Lingering((value) => told.push(value))
  lingering.now(1)
  vi.advanceTimersByTime(LINGER_MS / 2)
  lingering.now(3)
  vi.advanceTimersByTime(LINGER_MS / 2)
  lingering.now(2)
  lingering.now(0)
  expect(told).toEqual([3, 2, 0])
})
