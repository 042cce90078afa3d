// What a page asks of a session's past: everything once, and after each loss of the way only what is new.

import { signal } from '@preact/signals'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Handoff, JournalEntry, LinkState, SessionHandle } from '../../src/hold/api'
import { EMPTY } from '../../src/ui/session/timeline-model'
import { JournalReader } from '../../src/ui/session/journal-reader'
import { HANDOFF } from './fixtures'

const ONLINE: LinkState = { at: 'online' }
const OFFLINE: LinkState = {
  at: 'offline',
  why: '',
  unreached: 'silent',
  since: 0,
  retryAt: null,
  trouble: null,
}
const ENDED: LinkState = { at: 'ended', ending: null }
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

beforeEach(() => {
  vi.stubGlobal('window', globalThis)
})

function make() {
  const asked: (string | number | undefined)[] = []
  const shown: [Handoff, boolean][] = []
  const link = signal<LinkState>({ at: 'connecting', why: '', since: 0 })
  const journal: JournalEntry[] = []
  const handle = {
    link,
    info: signal(null),
    operators: signal(null),
    turn: signal(null),
    catchUp: async (since?: number): Promise<Handoff> => {
      asked.push(since)
      if (link.value.at !== 'online') throw new Error('away')
      return HANDOFF
    },
    journal: async (since: number) => {
      asked.push(`journal ${since}`)
      return { entries: journal.filter(({ seq }) => seq >= since), more: false, names: {} }
    },
  } as unknown as SessionHandle
  const into = signal(EMPTY)
  const reader = new JournalReader(handle, into)
  const stop = reader.start((handoff, again) => shown.push([handoff, again]))
  return { asked, shown, link, journal, into, reader, handle, stop }
}

test('all of it is asked for once; after a loss only what came since', async () => {
  const { asked, shown, link, journal, into, stop } = make()
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([undefined, 0, 'journal 121', 'journal 301'])
  expect(shown).toEqual([[HANDOFF, false]])
  const leftAt = Date.now() / 1000
  link.value = OFFLINE
  journal.push({ seq: 301, at: 0, actor: 'a', kind: 'resumed', fields: {} })
  asked.length = 0
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([301, 'journal 301'])
  expect(shown.length).toBe(2)
  expect(shown[1]![1]).toBe(true)
  expect(shown[1]![0].since_at).toBeGreaterThanOrEqual(leftAt)
  expect(into.value.through).toBe(301)
  stop()
})

test('what was read while the way was coming back is shown of all the same', async () => {
  const { asked, link, into, stop } = make()
  link.value = ONLINE
  await settled()
  link.value = OFFLINE
  into.value = { ...into.value, through: 400 }
  asked.length = 0
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([301, 'journal 401'])
  stop()
})

test('a beginning that failed is made up for', async () => {
  const { asked, shown, link, stop } = make()
  link.value = ONLINE
  link.value = OFFLINE // before the first answer
  await settled()
  expect([asked, shown]).toEqual([[undefined], []])
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([undefined, undefined, 0, 'journal 121', 'journal 301'])
  expect(shown).toEqual([[HANDOFF, false]])
  stop()
})

test('a session that ended meanwhile is read on, and not asked to sum up', async () => {
  const { asked, link, stop } = make()
  link.value = ONLINE
  await settled()
  link.value = OFFLINE
  asked.length = 0
  link.value = ENDED
  await settled()
  expect(asked).toEqual(['journal 301'])
  stop()
})

test('a command too short to change the state is read with what it printed', async () => {
  vi.useFakeTimers()
  const { asked, link, reader, stop } = make()
  link.value = ONLINE
  await vi.advanceTimersByTimeAsync(2000)
  asked.length = 0
  for (let printed = 0; printed < 10; printed += 1) {
    reader.printed() // it never falls silent
    await vi.advanceTimersByTimeAsync(200)
  }
  expect(asked.length).toBeGreaterThanOrEqual(1)
  expect(asked.length).toBeLessThanOrEqual(2)
  stop()
  vi.useRealTimers()
})

test('a question that failed while the way is open is asked again', async () => {
  vi.useFakeTimers()
  const { shown, link, into, handle, stop } = make()
  const sumUp = handle.catchUp
  handle.catchUp = async () => {
    throw new Error('too busy')
  }
  link.value = ONLINE
  await vi.advanceTimersByTimeAsync(1000)
  expect(shown).toEqual([])
  handle.catchUp = sumUp
  await vi.advanceTimersByTimeAsync(10_000)
  expect(shown).toEqual([[HANDOFF, false]])
  expect(into.value.through).toBe(HANDOFF.through_seq)
  stop()
  vi.useRealTimers()
})

test('a page that is opened later shows the halts of the past, which a summary leaves out', async () => {
  const { link, journal, into, stop } = make()
  const halted = { at: 5, actor: 'a', kind: 'halted', fields: { frozen: true } }
  journal.push({ ...halted, seq: 130 }, { ...halted, seq: 140, kind: 'resumed', fields: {} })
  for (let seq = 141; seq <= 300; seq += 1)
    journal.push({ seq, at: 6, actor: 'a', kind: 'input', fields: {} })
  link.value = ONLINE
  await settled()
  await settled()
  expect(into.value.events.map(({ kind }) => kind)).toEqual(['halted', 'resumed'])
  expect([into.value.through, into.value.leftOut]).toEqual([300, 120])
  stop()
})
