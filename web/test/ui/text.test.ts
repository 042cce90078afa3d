import { describe, expect, test } from 'vitest'
import type { Change } from '../../src/hold/api'
import { age, ago, clock, span, took } from '../../src/ui/text/durations'
import { defaultColour, hueOf, learnHues } from '../../src/ui/text/actor-colour'
import { changeLine, hasNews, othersActed } from '../../src/ui/text/handoff'
import { sanitize } from '../../src/ui/text/sanitize'
import { may, reachLine, rightsLine, roleOf } from '../../src/ui/text/rights'
import { endingText, listedState, shownState, stateText } from '../../src/ui/text/session-state'
import { HANDOFF } from './fixtures'

test('a duration is shown in its two largest units, as the command line does', () => {
  expect([0, 59, 60, 3599, 3600, 7800, 86399, 86400, 356400].map(age)).toEqual([
    '0s',
    '59s',
    '1m',
    '59m',
    '1h0m',
    '2h10m',
    '23h59m',
    '1d0h',
    '4d3h',
  ])
  expect(age(-5)).toBe('0s')
})

test('what just happened is not shown in seconds', () => {
  expect(ago(100, 103)).toBe('just now')
  expect(ago(100, 400)).toBe('5m ago')
})

test('the duration of a short command is shown finely', () => {
  expect([0.0001, 0.02, 0.5, 9.94, 41, 200, 3725].map(took)).toEqual([
    '1 ms',
    '20 ms',
    '0.5 s',
    '9.9 s',
    '41 s',
    '3 min 20 s',
    '1h2m',
  ])
})

test('another day is named', () => {
  const noon = new Date(2026, 10, 16, 12).getTime() / 1000
  expect(clock(noon, noon + 60)).toBe('12:00:00')
  expect(clock(noon, noon + 86400)).toBe('2026-11-16 12:00:00')
})

test('a chosen length of time is shown in the unit it was chosen in', () => {
  expect([60, 3600, 28800, 86400, 2592000].map(span)).toEqual([
    '1 minute',
    '1 hour',
    '8 hours',
    '1 day',
    '30 days',
  ])
})

test('text that turns the direction of writing, hides or breaks lines is shown as dots', () => {
  expect(sanitize('rm\u202e -rf\u200b /\n')).toBe('rm· -rf· /·')
  expect(sanitize('日本語 é 🙂')).toBe('日本語 é 🙂')
  expect(sanitize('x'.repeat(50), 10)).toBe(`${'x'.repeat(10)}…`)
})

describe('the state that is shown', () => {
  test('is fenced while the lease is not held, whatever the kernel says', () => {
    expect(shownState('working', { state: 'fenced' })).toBe('fenced')
    expect(shownState('working', { state: 'held' })).toBe('working')
  })
  test('is held in a list while a line waits for approval, but not when it is halted', () => {
    const of = { state: 'prompt', lease: null, full_screen: false, held: '1a2b3c4d' }
    expect(listedState(of)).toBe('held')
    expect(listedState({ ...of, state: 'halted' })).toBe('halted')
    expect(listedState({ ...of, held: '' })).toBe('prompt')
  })
  test('is ended for good', () => {
    expect(shownState('ended', { state: 'fenced' })).toBe('ended')
  })
  test('an ending is shown as it truly was', () => {
    expect(endingText({ code: 0, signal: null, lost: null })).toBe('exited with status 0')
    expect(endingText({ code: 7, signal: null, lost: null })).toBe('exited with status 7')
    expect(endingText({ code: null, signal: 9, lost: null })).toBe('killed by SIGKILL')
    const lost = { code: null, signal: null, lost: 'its host died' }
    expect(endingText(lost)).toBe('lost: its host died')
    expect(endingText({ ...lost, successor: 'abc' })).toBe('lost: its host died; followed by abc')
    expect(shownState('lost', { state: 'fenced' })).toBe('lost')
    expect(stateText('lost').tone).toBe('danger')
  })
})

describe('rights', () => {
  test('are shown as the role they are', () => {
    expect(roleOf(['observe'])).toBe('read')
    expect(roleOf(['observe', 'input', 'signal', 'resize', 'turn.request', 'turn.grant'])).toBe('execute')
    expect(roleOf(['observe', 'grant', 'seize', 'halt', 'end'])).toBe('admin')
    expect(roleOf(['observe', 'halt'])).toBeNull()
  })
  test('are shown as text', () => {
    expect(rightsLine(['observe'])).toBe('watch only')
    expect(rightsLine(['observe', 'halt'])).toBe('watch, halt and resume')
    expect(rightsLine([])).toBe('nothing')
  })
  test('are offered while they are not known, and not when there are none', () => {
    expect(may(null, 'input')).toBe(true)
    expect(may(['observe', 'input'], 'input')).toBe(true)
    expect(may(['observe'], 'input')).toBe(false)
    expect(may([], 'input')).toBe(false)
  })
  test('a reach is shown as text', () => {
    expect(reachLine('')).toBe('every session of this machine')
    expect(reachLine(`host:${'a'.repeat(64)}`)).toBe('every session of this machine')
    expect(reachLine('label:a/label:b')).toBe('sessions labelled a and b')
    expect(reachLine('label:a/session:x')).toBe('one session')
  })
})

test('an actor has the colour its host would choose, and no class name comes from outside', () => {
  expect(defaultColour('a')).toBe(['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'][97 % 6])
  expect(hueOf('green', 'x')).toEqual({ '--hue': 'var(--id-olive)', '--on-hue': 'var(--on-olive)' })
  expect(hueOf('green } body {', 'a')).toEqual(hueOf(defaultColour('a'), 'a'))
})

test('actors have hues of their own up to the tenth, in order of joining, and keep them', () => {
  const actors = Array.from({ length: 11 }, (_, n) => ({ id: `h${n}`, colour: 'cyan', created_at: n }))
  learnHues(actors.slice(3, 5).reverse())
  expect(hueOf('cyan', 'h3')['--hue']).toBe('var(--id-teal)')
  learnHues(actors.slice(0, 10).reverse())
  expect(hueOf('cyan', 'h3')['--hue']).toBe('var(--id-teal)')
  expect(new Set(actors.slice(0, 10).map(({ id }) => hueOf('cyan', id)['--hue'])).size).toBe(10)
  learnHues(actors)
  expect(hueOf('cyan', 'h10')['--hue']).toBe('var(--id-teal)')
})

test('a change of PATH says what came first', () => {
  const change: Change = {
    kind: 'path',
    name: 'PATH',
    what: 'changed',
    before: '/usr/bin:/bin',
    after: '/tmp/x:/bin',
  }
  expect(changeLine(change)).toBe('PATH: added /tmp/x (first); removed /usr/bin')
})

test('an operator that was never here gets no news of everything before', () => {
  expect(hasNews(HANDOFF)).toBe(true)
  expect(hasNews({ ...HANDOFF, since_at: null })).toBe(false)
  const nothing = { commands: [], moves: [], changes: [], refused: 0, blind_bytes: 0, unsubmitted: '' }
  expect(hasNews({ ...HANDOFF, ...nothing })).toBe(false)
  expect(hasNews({ ...HANDOFF, ...nothing, unsubmitted: 'rm -rf .' })).toBe(true)
  expect(hasNews({ ...HANDOFF, ...nothing, unsubmitted_known: false })).toBe(true)
})

test('an operator that only lost the connection gets no news of its own actions', () => {
  const nothing = { ...HANDOFF, commands: [], moves: [], unsubmitted: 'half a line' }
  const command = { ...HANDOFF.commands[0]!, actor: 'mara' }
  const left = { at: 1, step: 'leave', before: 'mara', holder: '', reason: '' }
  const own = { ...nothing, commands: [command], moves: [left, { ...left, step: 'request', holder: 'mara' }] }
  expect(othersActed(nothing, 'mara')).toBe(false)
  expect(othersActed(own, 'mara')).toBe(false)
  expect(othersActed({ ...own, commands: [{ ...command, actor: 'claude' }] }, 'mara')).toBe(true)
  expect(othersActed({ ...own, moves: [{ ...left, step: 'request', holder: 'claude' }] }, 'mara')).toBe(true)
})
