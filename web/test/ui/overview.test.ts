import { expect, test } from 'vitest'
import type { SessionCard } from '../../src/hold/api'
import { labelsOf, lineOf, matches, order } from '../../src/ui/overview/filter'
import { noticesFor } from '../../src/ui/parts/notify-rules'
import { CARDS, COMMANDS, MACHINE, session } from './fixtures'

const names = (cards: readonly SessionCard[]): string[] => cards.map((card) => card.info.name)
const shown = (text: string, labels: string[] = [], show: 'live' | 'needs' | 'ended' = 'live'): string[] =>
  names(CARDS.filter((card) => matches(card, { text, labels, show })))

test('sessions that wait for input come first, ended ones last', () => {
  const sorted = names(order(CARDS))
  expect(sorted.slice(0, 2)).toEqual(['db', 'deploy'])
  expect(sorted.at(-1)).toBe('migrate')
})

test('every word of a search is found somewhere in what people know it by', () => {
  expect(shown('gpu-box loss')).toEqual(['train'])
  expect(shown('WAITING secret')).toEqual(['db'])
  expect(shown('nothing-like-it')).toEqual([])
})

test('labels narrow, and ended sessions are apart', () => {
  expect(shown('', ['ci', 'tide'])).toEqual(['build'])
  expect(shown('', [], 'needs')).toEqual(['deploy', 'db'])
  expect(shown('', [], 'ended')).toEqual(['migrate'])
  expect(labelsOf(CARDS)).toEqual(['ci', 'gpu', 'prod', 'tide'])
})

test('a session that waits shows its prompt', () => {
  expect(lineOf(CARDS[1]!)).toContain('Apply these 3 changes')
})

const card = (change: Parameters<typeof session>[1]): SessionCard => ({
  ...CARDS[0]!,
  info: session('build', change),
})
const told = (before: SessionCard[], after: SessionCard[]): string[] =>
  noticesFor(before, after, [MACHINE]).map((one) => one.title)

test('a session that begins to wait causes one notification', () => {
  const works = card({ state: 'working' })
  const waits = card({ state: 'input', waiting_line: 'Go on? ' })
  expect(told([works], [waits])).toEqual(['build on workbench waits for input'])
  expect(told([waits], [waits])).toEqual([])
})

test('a full-screen program is in use: it needs nobody and notifies nobody', () => {
  const opened = card({ state: 'input', full_screen: true })
  expect(told([card({ state: 'working' })], [opened])).toEqual([])
  expect(matches(opened, { text: 'in use', labels: [], show: 'live' })).toBe(true)
  expect(matches(opened, { text: '', labels: [], show: 'needs' })).toBe(false)
})

test('the notification of an end says how the session ended', () => {
  const [notice] = noticesFor(
    [card({})],
    [
      card({
        state: 'ended',
        ending: {
          code: 3,
          signal: null,
          lost: null,
          cause: null,
          successor: '',
          checkpoint: '',
          moved_to: '',
        },
      }),
    ],
    [MACHINE],
  )
  expect([notice?.title, notice?.body]).toEqual(['build on workbench ended', 'exited with status 3'])
})

const LOST: Parameters<typeof session>[1] = {
  state: 'lost',
  ending: {
    code: null,
    signal: null,
    lost: 'its keeper died',
    cause: null,
    successor: '',
    checkpoint: '',
    moved_to: '',
  },
  in_flight: {
    command: { ...COMMANDS[0]!, text: 'make deploy', actor: 'claude' },
    inputs: [],
    unsubmitted: '',
    unsubmitted_by: [],
  },
}

test('a lost session is listed with the live ones, with what was in flight, until acknowledged', () => {
  const lost = card({ ...LOST, acknowledged_at: null })
  const live = { text: '', labels: [], show: 'live' } as const
  expect(matches(lost, live)).toBe(true)
  expect(matches(lost, { ...live, show: 'ended' })).toBe(false)
  expect(lineOf(lost)).toBe('In flight: make deploy by claude')
  const known = card({ ...LOST, acknowledged_at: 5, acknowledged_by: 'mara' })
  expect(matches(known, live)).toBe(false)
  expect(matches(known, { ...live, show: 'ended' })).toBe(true)
})

test('the notification of a loss does not call it an end', () => {
  const [notice] = noticesFor([card({})], [card(LOST)], [MACHINE])
  expect([notice?.title, notice?.body]).toEqual(['build on workbench was lost', 'lost: its keeper died'])
})

test('a request for the own turn causes a notification, one for the turn of others does not', () => {
  const mine = card({ holder: 'mara-laptop' })
  expect(told([mine], [card({ holder: 'mara-laptop', waiting: ['claude'] })])).toEqual([
    'claude asks for your turn',
  ])
  expect(told([card({ holder: 'jonas' })], [card({ holder: 'jonas', waiting: ['claude'] })])).toEqual([])
})

test('what is seen for the first time is no noticesFor', () => {
  expect(told([], [card({ state: 'input' })])).toEqual([])
})
