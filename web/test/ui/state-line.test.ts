import { expect, test } from 'vitest'
import type { LinkState, SessionInfo, TurnState } from '../../src/hold/api'
import { runningCommand } from '../../src/ui/text/running'
import { shownState, stateText } from '../../src/ui/text/session-state'
import { stateLine, type LineFacts } from '../../src/ui/text/state-line'
import { COMMANDS, NOW, session, TURN_OTHER } from './fixtures'

const running = {
  ...COMMANDS[0]!,
  text: 'make test',
  actor: 'otto',
  status: null,
  ended_at: null,
  began_at: NOW - 134,
}
const turn = (holder: string, yours = false): TurnState => ({
  turn: { ...TURN_OTHER, holder: holder && `${holder}-id`, holder_name: holder, seized: false, queue: [] },
  yours,
  waiting: false,
})

function said(change: Partial<LineFacts>, info: Partial<SessionInfo> = {}): string {
  const line = stateLine({
    info: session('deploy', { last_command: running, state: 'working', cwd: '/srv/api', ...info }),
    link: { at: 'online' },
    turn: turn('otto'),
    mayType: true,
    mayResume: true,
    halt: null,
    far: null,
    held: null,
    me: 'mara',
    machine: 'build-1',
    now: NOW,
    ...change,
  })
  return `${line.before}${line.code}${line.after} / ${[line.since, line.may].filter(Boolean).join(' · ')}`
}

test('what is checkpointed says so while it stands still, and what runs while it is only stored', () => {
  const far = {
    work: 'Checkpointing',
    phase: 'writing its memory',
    part: 0.5,
    amount: '5 MB of 10 MB',
    still: true,
  }
  expect(said({ far })).toBe(
    'Checkpointing: writing its memory / 5 MB of 10 MB · what is typed now waits until it is done',
  )
  expect(said({ far: { ...far, phase: 'storing the checkpoint', still: false } })).toBe(
    'otto runs make test / for 2m · you are watching · storing the checkpoint 5 MB of 10 MB',
  )
})

test('the line says who does what, since when, and what you may do', () => {
  expect(said({})).toBe('otto runs make test / for 2m · you are watching')
  expect(said({ me: 'otto', turn: turn('otto', true) })).toBe(
    'You run make test / for 2m · you hold the turn',
  )
  expect(said({}, { last_command: null, created_at: NOW - 20, argv: ['./serve'] })).toBe(
    './serve is running / for 20s · you are watching, otto holds the turn',
  )
  expect(
    said({ turn: turn('') }, { state: 'prompt', last_command: { ...running, status: 0, ended_at: NOW - 5 } }),
  ).toBe('At the prompt in /srv/api / for 5s · the turn is free: the first to type takes it')
})

test('a halted or read-only view is not told that the first to type takes the turn', () => {
  const free = turn('')
  expect(said({ turn: free, halt: { actor: 'jonas', at: NOW - 720 } }, { state: 'halted' })).toBe(
    'Halted by jonas / 12m ago · nothing runs and nobody can type; you may resume it',
  )
  expect(said({ turn: free, mayResume: false }, { state: 'halted' })).toBe(
    'Halted / nothing runs and nobody can type',
  )
  expect(said({ turn: free, mayResume: false }, { state: 'halted', state_since: NOW - 60 })).toBe(
    'Halted / 1m ago · nothing runs and nobody can type',
  )
  expect(said({}, { state: 'stopped', state_since: NOW - 60 })).toMatch(/is stopped \/ for 1m/)
  const fenced = {
    at: 'fenced',
    trouble: { code: 'fenced', message: '', hint: '', retryable: true },
  } as const
  expect(said({ link: fenced }, { state_since: NOW - 30 })).toMatch(/^Fenced.* \/ for 30s · nobody can type/)
  const taken = { state: 'taken', length_s: 30, left_s: 0, later_epoch: 3, why: '' }
  expect(said({ link: fenced }, { lease: taken })).toMatch(/^Fenced: another host has it \//)
  expect(said({ turn: free, mayType: false })).toBe(
    'otto runs make test / for 2m · you are watching: your access does not include typing',
  )
})

test('a shell that lost its integration is said to be, with whoever shaped it', () => {
  expect(
    said({ turn: turn('') }, { state: 'prompt', last_command: null, shaped_by: ['bot', 'eve'] }),
  ).toMatch(/^At the prompt .* · the shell does not report; shaped by bot, eve · the turn is free/)
  expect(said({}, { state: 'prompt' })).not.toContain('does not report')
})

test('a machine that is down, silent or cut off from this device is said to be that', () => {
  const offline = (unreached: 'down' | 'silent' | 'relay'): LinkState => ({
    at: 'offline',
    why: '',
    unreached,
    since: NOW,
    retryAt: null,
    trouble: null,
  })
  expect(said({ link: offline('down') })).toMatch(
    /^build-1 is not connected \/ since .* last known: otto ran make test$/,
  )
  expect(said({ link: offline('silent') })).toMatch(/^build-1 does not answer/)
  expect(said({ link: offline('relay') })).toMatch(/^This device is not connected/)
})

test('a session that is over says how it ended', () => {
  const ending = {
    code: null,
    signal: 9,
    lost: null,
    cause: null,
    successor: '',
    checkpoint: '',
    moved_to: '',
  }
  expect(said({ link: { at: 'ended', ending } }, { state: 'ended', ended_at: NOW - 60 })).toBe(
    'Killed by SIGKILL / 1m ago · its last screen and its record can be read',
  )
  const lost = { ...ending, signal: null, lost: 'its keeper died' }
  expect(said({ link: { at: 'ended', ending: lost } }, { ended_at: null })).toMatch(/^Lost: its keeper died/)
})

test('a session that is asleep neither works nor was lost', () => {
  const ending = {
    code: null,
    signal: null,
    lost: null,
    cause: null,
    successor: '',
    checkpoint: 'c7',
    moved_to: '',
  }
  const asleep = session('x', { state: 'asleep', last_command: running, ending })
  expect(stateText(shownState(asleep.state, null)).word).toBe('asleep')
  expect(runningCommand(asleep)).toBeNull()
  expect(said({ link: { at: 'ended', ending } }, asleep)).toMatch(/^Asleep in its checkpoint /)
})
