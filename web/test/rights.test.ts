// The rights of a device, and how a view that lost the right to type finds out that it has it again.

import { signal } from '@preact/signals-core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { InputRightsRetry } from '../src/hold/input-rights-retry'
import { rightsIn } from '../src/hold/rights'
import type { Envelope } from '../src/wire/generated/values'
import { session } from './ui/fixtures'

const GRANT = { rights: ['input', 'observe'], expires: 1000 }
const INFO = session('x', { id: 'theid', labels: ['team'] })

function envelope(kind: string, name: string, rights: string[], expires_at: number | null = null): Envelope {
  return { scope: { kind, name }, rights, expires_at } as unknown as Envelope
}

describe('rights', () => {
  test('are unknown until the host has reported them', () => {
    expect(rightsIn(INFO, null, GRANT, 0)).toBeNull()
    expect(rightsIn(null, null, GRANT, 0)).toBeNull()
  })

  test('are those of the grant where no envelope counts, and none when it is over', () => {
    expect(rightsIn(INFO, [], GRANT, 999)).toEqual(['input', 'observe'])
    expect(rightsIn(INFO, [], GRANT, 1000)).toEqual([])
  })

  test('of an envelope that expired are none', () => {
    const one = envelope('session', 'theid', ['input'], 100)
    expect(rightsIn(INFO, [one], GRANT, 99)).toEqual(['input'])
    expect(rightsIn(INFO, [one], GRANT, 100)).toEqual([])
  })

  test('are those of the nearest scope, and of all its envelopes together', () => {
    const all = envelope('all', '', ['observe', 'input', 'halt'])
    const label = envelope('label', 'team', ['observe', 'input'])
    const other = envelope('label', 'team', ['observe'])
    expect(rightsIn(INFO, [all, label, other], GRANT, 0)).toEqual(['observe'])
    expect(rightsIn(INFO, [all, envelope('label', 'else', [])], GRANT, 0)).toEqual([
      'observe',
      'input',
      'halt',
    ])
  })
})

describe('a view that may only watch', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function make(rights: string[] | null, answers: (string[] | null)[]) {
    const known = signal(rights)
    let regained = 0
    let looks = 0
    const look = async () => {
      looks++
      const next = answers.shift()
      if (next !== undefined) known.value = next
    }
    const rightsRetry = new InputRightsRetry(known, look, () => regained++)
    rightsRetry.start()
    return { rightsRetry, known, regained: () => regained, looks: () => looks }
  }

  test('types again when it has the right again, and looks no more', async () => {
    const stale = ['input', 'observe']
    const { regained, looks } = make(stale, [['observe'], ['observe'], ['observe', 'input']])
    await vi.advanceTimersByTimeAsync(5000)
    expect(regained()).toBe(0)
    await vi.advanceTimersByTimeAsync(5000)
    expect([regained(), looks()]).toEqual([1, 3])
    await vi.advanceTimersByTimeAsync(60_000)
    expect([regained(), looks()]).toEqual([1, 3])
  })

  test('is not found by asking again: a host that refuses what it seems to allow is not asked repeatedly', async () => {
    const { regained } = make(['input'], [['input'], ['input'], null, ['input']])
    await vi.advanceTimersByTimeAsync(30_000)
    expect(regained()).toBe(0)
  })

  test('is left alone when it is closed', async () => {
    const { rightsRetry, regained, looks, known } = make(['observe'], [])
    rightsRetry.stop()
    known.value = ['input']
    await vi.advanceTimersByTimeAsync(30_000)
    expect([regained(), looks()]).toEqual([0, 1])
  })
})
