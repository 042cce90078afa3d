// What a page asks of a session's past: everything once, and after each loss of the way only what is new.

import { signal } from '@preact/signals'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Handoff, JournalEntry, LinkState, SessionHandle } from '../../src/hold/api'
import { EMPTY } from '../../src/ui/session/chronicle'
import { JournalReader } from '../../src/ui/session/journal-reader'
import { HANDOFF } from './invented'

const ONLINE: LinkState = { at: 'online' }
const OFFLINE: LinkState = { at: 'offline', why: '', since: 0, retryAt: null, trouble: null }
const ENDED: LinkState = { at: 'ended', ending: null }
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

beforeEach(() => {
  vi.stubGlobal('window', globalThis)
})

function make() {
  const asked: (string | number | undefined)[] = []
  const told: [Handoff, boolean][] = []
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
  const stop = new JournalReader(handle, into).start((handoff, again) => told.push([handoff, again]))
  return { asked, told, link, journal, into, stop }
}

test('all of it is asked for once; after a loss only what came since', async () => {
  const { asked, told, link, journal, into, stop } = make()
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([undefined, 0, 'journal 301'])
  expect(told).toEqual([[HANDOFF, false]])
  const leftAt = Date.now() / 1000
  link.value = OFFLINE
  journal.push({ seq: 301, at: 0, actor: 'a', kind: 'resumed', fields: {} })
  asked.length = 0
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([301, 'journal 301'])
  expect(told.length).toBe(2)
  expect(told[1]![1]).toBe(true)
  expect(told[1]![0].since_at).toBeGreaterThanOrEqual(leftAt)
  expect(into.value.through).toBe(301)
  stop()
})

test('what was read while the way was coming back is told of all the same', async () => {
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
  const { asked, told, link, stop } = make()
  link.value = ONLINE
  link.value = OFFLINE // before the first answer
  await settled()
  expect([asked, told]).toEqual([[undefined], []])
  link.value = ONLINE
  await settled()
  expect(asked).toEqual([undefined, undefined, 0, 'journal 301'])
  expect(told).toEqual([[HANDOFF, false]])
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
