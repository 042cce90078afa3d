// What settles a need from a list: only what was asked is answered, and the turn is had no longer than it takes. The channel is a
// stand-in that remembers what went through it.

import { beforeEach, expect, test, vi } from 'vitest'
import type { Asked, SessionInfo } from '../src/hold/api'
import type { EpochStore } from '../src/hold/epoch-store'
import { Errands } from '../src/hold/errands'
import type { MachineLink } from '../src/hold/machine-link'
import { COMMANDS, session } from './ui/fixtures'

const ID = '0'.repeat(26)
const QUESTION = session('deploy', { id: ID, state: 'input', waiting_line: 'Go on? [y/N]' })

let shown: SessionInfo[] // what the host shows, one after the other; the last one from then on
let turn: { holder_name: string; yours: boolean; given: boolean }
let said: string[]

vi.mock('../src/hold/session-channel', () => ({ sessionChannel: async () => channel }))

const channel = {
  ask: async (tag: string, fields: { text?: string; secret?: boolean; to?: string }): Promise<unknown> => {
    if (tag === 'show') return { info: shown.length > 1 ? shown.shift() : shown[0] }
    if (tag === 'turn') return { turn: { holder_name: turn.holder_name }, yours: turn.yours }
    said.push([tag, fields.text, fields.secret ? 'secret' : '', fields.to].filter(Boolean).join(' '))
    return { turn: { holder_name: turn.holder_name }, yours: turn.given }
  },
  close: () => said.push('closed'),
}

beforeEach(() => {
  shown = [QUESTION]
  turn = { holder_name: '', yours: false, given: true }
  said = []
})

function errands(): Errands {
  const machine = { throughRelay: async () => ({}), sessions: { shown: () => undefined } }
  return new Errands(machine as unknown as MachineLink, {} as EpochStore)
}

const asked: Asked = QUESTION

test('an answer is typed once, with the turn for as long as that takes', async () => {
  await errands().answer(asked, 'y')
  expect(said).toEqual(['request_turn', 'submit y', 'yield_turn', 'closed'])
})

test('who has the turn already keeps it', async () => {
  turn = { ...turn, yours: true }
  await errands().answer(asked, 'y')
  expect(said).toEqual(['submit y', 'closed'])
})

test('a secret goes where nobody sees it, or nowhere', async () => {
  shown = [{ ...QUESTION, state: 'secret' }]
  await errands().answer({ ...asked, state: 'secret' }, 'hunter2')
  expect(said).toContain('submit hunter2 secret')
})

test.each([
  ['another question', { waiting_line: 'Delete all? [y/N]' }],
  ['the same question of another command', { last_command: { ...COMMANDS[0]!, seq: 99 } }],
  ['no question', { state: 'working' as const }],
  ['a full-screen program', { full_screen: true }],
])('nothing is sent to %s', async (_, change) => {
  shown = [{ ...QUESTION, ...change }]
  await expect(errands().answer(asked, 'y')).rejects.toMatchObject({ code: 'question_over' })
  expect(said).toEqual(['closed'])
})

test('nothing is sent when the question went while the turn was asked for', async () => {
  shown = [QUESTION, { ...QUESTION, waiting_line: 'Delete all? [y/N]' }]
  await expect(errands().answer(asked, 'y')).rejects.toMatchObject({ code: 'question_over' })
  expect(said).toEqual(['request_turn', 'yield_turn', 'closed'])
})

test('who does not get the turn sends nothing, and does not wait for it either', async () => {
  turn = { holder_name: 'otto', yours: false, given: false }
  await expect(errands().answer(asked, 'y')).rejects.toMatchObject({ code: 'turn_held' })
  expect(said).toEqual(['request_turn', 'withdraw_turn', 'closed'])
})

test('the turn is given, and a halt ended, over a channel of its own', async () => {
  await errands().giveTurn(ID, 'jonas')
  await errands().resume(ID)
  expect(said).toEqual(['grant_turn jonas', 'closed', 'resume', 'closed'])
})
