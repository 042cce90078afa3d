import { expect, test } from 'vitest'
import type { SessionCard } from '../../src/hold/api'
import { needsOf } from '../../src/ui/overview/needs'
import { runningCommand, sinceOf } from '../../src/ui/text/running'
import { CARDS, COMMANDS, FAR, MACHINE, NOW, session } from './fixtures'

const card = (name: string, change: Parameters<typeof session>[1]): SessionCard => ({
  ...CARDS[0]!,
  info: session(name, change),
})
const kinds = (...cards: SessionCard[]): string[] =>
  needsOf(cards, [MACHINE, FAR]).map((need) => `${need.kind} ${need.card.info.name}`)

test('questions, secrets, requests, halts and losses are one list, the most urgent first', () => {
  const ending = {
    code: null,
    signal: null,
    lost: 'its keeper died',
    cause: null,
    successor: '',
    moved_to: '',
    checkpoint: '',
  }
  const found = kinds(
    card('gone', { state: 'lost', ending }),
    card('frozen', { state: 'halted' }),
    card('mine', { holder: MACHINE.actor, waiting: ['jonas'] }),
    card('vault', { state: 'secret', waiting_line: 'Password: ' }),
    card('deploy', { state: 'input', waiting_line: 'Go on? [y/N]' }),
    card('works', {}),
  )
  expect(found).toEqual(['question deploy', 'secret vault', 'turn mine', 'halted frozen', 'lost gone'])
})

test('full-screen programs, acknowledged losses and unreachable machines need nobody', () => {
  expect(
    kinds(
      card('vim', { state: 'input', full_screen: true }),
      card('gone', { state: 'lost', acknowledged_at: NOW }),
      card('theirs', { holder: 'claude', waiting: ['jonas'] }),
      { ...card('far', { state: 'input', waiting_line: 'old? ' }), machine: FAR.key, link: 'offline' },
    ),
  ).toEqual([])
})

test('a row says since when: the command that runs, or the last thing printed before an answer', () => {
  const running = { ...COMMANDS[0]!, status: null, ended_at: null, began_at: NOW - 90 }
  const works = session('build', { last_command: running })
  expect([runningCommand(works)?.text, sinceOf(works)]).toEqual([running.text, NOW - 90])
  const asks = session('ask', { state: 'input', last_command: running, last_output_at: NOW - 20 })
  expect(sinceOf(asks)).toBe(NOW - 20)
  expect(sinceOf(session('frozen', { state: 'halted', state_since: NOW - 40 }))).toBe(NOW - 40)
  expect(sinceOf(session('frozen', { state: 'halted' }))).toBeNull() // nobody knows
})

test('what is fenced needs somebody, with the time since', () => {
  const lease = { state: 'fenced', length_s: 30, left_s: 0, later_epoch: 0, why: '' }
  const [need, ...more] = needsOf([card('moved', { lease, state_since: NOW - 90 })], [MACHINE, FAR])
  expect(more).toEqual([])
  expect(need).toMatchObject({ kind: 'fenced', text: 'moved is fenced', since: NOW - 90 })
  expect(kinds(card('taken', { state: 'input', lease: { ...lease, state: 'taken' } }))).toEqual([
    'fenced taken',
  ])
})

test('a request for the turn is not hidden by what else the session needs', () => {
  const mine = { holder: MACHINE.actor, waiting: ['jonas'] }
  const lease = { state: 'fenced', length_s: 30, left_s: 0, later_epoch: 0, why: '' }
  expect(kinds(card('asks', { ...mine, state: 'input', waiting_line: 'Go on? ' }))).toEqual([
    'question asks',
    'turn asks',
  ])
  expect(kinds(card('vault', { ...mine, state: 'secret' }))).toEqual(['secret vault', 'turn vault'])
  expect(kinds(card('ice', { ...mine, state: 'halted' }))).toEqual(['turn ice', 'halted ice'])
  expect(kinds(card('gone', { ...mine, lease }))).toEqual(['turn gone', 'fenced gone'])
  expect(kinds(card('over', { ...mine, state: 'ended' }))).toEqual([])
})
