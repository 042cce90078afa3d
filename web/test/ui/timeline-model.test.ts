import { expect, test } from 'vitest'
import type { JournalEntry } from '../../src/hold/api'
import { added, EMPTY, haltOf, rowsOf, seeded } from '../../src/ui/session/timeline-model'
import { HANDOFF } from './fixtures'

const NAMES = { a1: 'anna', b1: 'bot' }
let last = 0
const entry = (kind: string, actor: string, fields: Record<string, unknown> = {}): JournalEntry => {
  last += 1
  return { seq: last, at: 1000 + last, actor, kind, fields }
}

test('a command runs until it ends, and keeps its actor', () => {
  const began = entry('command_began', 'a1', {
    number: 4,
    text: 'make',
    cwd: '/',
    offset: 0,
    authors: ['b1', 'a1'],
  })
  const running = added(EMPTY, [began], NAMES)
  expect(running.commands).toMatchObject([
    { number: 4, actor: 'anna', authors: ['bot', 'anna'], status: null },
  ])
  const over = added(running, [entry('command_ended', '', { number: 4, status: 2 })], NAMES)
  expect(over.commands).toMatchObject([{ number: 4, status: 2, endedAt: 1000 + last }])
})

test('a record that came already changes nothing', () => {
  const began = entry('command_began', 'a1', { number: 5, text: 'x' })
  const once = added(EMPTY, [began], NAMES)
  expect(added(once, [began], NAMES)).toEqual(once)
})

test('moves of the turn are texts, and seizures are marked', () => {
  const moves = [
    entry('turn_moved', 'a1', { step: 'request', before: '', holder: 'a1' }),
    entry('turn_moved', 'b1', { step: 'seize', before: 'a1', holder: 'b1', reason: 'loops' }),
    entry('turn_moved', '', { step: 'leave', before: 'b1', holder: '' }),
    entry('turn_moved', '', { step: 'revoke', before: 'b1', holder: '' }),
  ]
  const { events } = added(EMPTY, moves, NAMES)
  expect(events.map((one) => [one.text, one.tone])).toEqual([
    ['anna took the turn', 'plain'],
    ['bot seized the turn from anna: loops', 'danger'],
    ['bot left, the turn is free', 'plain'],
    ['the turn was taken from bot', 'danger'],
  ])
})

test('other events name their actor', () => {
  const { events } = added(
    EMPTY,
    [
      entry('turn_asked', 'a1'),
      entry('halted', 'b1', { frozen: true }),
      entry('resumed', 'a1'),
      entry('refused', 'b1', { what: 'input', code: 'turn_held' }),
      entry('end_asked', 'a1'),
      entry('fenced', ''),
    ],
    NAMES,
  )
  expect(events.map((one) => one.text)).toEqual([
    'anna asked for the turn',
    'bot halted the session',
    'anna resumed the session',
    'bot was refused: input (turn_held)',
    'anna asked to end the session',
    'the host lost the lease; the session is fenced',
  ])
})

test('what changes who may do what, where it runs and what is recorded is in the timeline', () => {
  const { events } = added(
    EMPTY,
    [
      entry('leased', '', { length_s: 30, before: 0 }),
      entry('renamed', 'a1', { before: 'x', name: 'deploy' }),
      entry('envelope_set', 'a1', { subject: 'b1', scope: 'all', rights: ['observe'] }),
      entry('envelope_set', 'a1', { subject: 'b1', scope: 'all', rights: [] }),
      entry('actor_revoked', 'a1', { subject: 'b1' }),
      entry('gate_policy_set', 'a1', { scope: 'session:abc', digest: 'ff', source: 'starter:two-person' }),
      entry('gate_policy_set', 'a1', { scope: 'label:prod', digest: '', source: '' }),
      entry('adopted', 'a1', { target: 'var:PATH', before: ['b1'] }),
      entry('unrecorded', 'b1', { what: 'attached', count: 3, since: 1 }),
      entry('fenced', '', { cause: 'lapse' }),
      entry('halted', '', { frozen: true, scope: 'session' }),
      entry('leased', '', { length_s: 30, before: 1 }),
      entry('fenced', '', { cause: 'taken' }),
    ],
    NAMES,
  )
  expect(events.map((one) => one.text)).toEqual([
    'anna renamed the session to deploy',
    'anna gave bot: watch only',
    'anna took all rights from bot',
    'anna revoked the access of bot',
    'anna set the policy of this session: starter:two-person',
    'anna removed the policy of label:prod',
    'anna answers for var:PATH from now on',
    '3 records of bot are missing (attached): the disk was full',
    'the host lost the lease; the session is fenced',
    'all its processes are frozen',
    'the host holds the lease again; the session goes on',
    'another host has the session; here it stays frozen for good',
  ])
})

test('a session that nobody uses is said to be reaped, with why', () => {
  const idle = { why: 'unused for 7 days', idle_since: 1 }
  const { events } = added(
    EMPTY,
    [
      entry('revived', 'a1', {
        predecessor: 'old1',
        cwd: '/',
        environment: true,
        left_behind: ['a job', 'x'],
      }),
      entry('pinned', 'a1', { pinned: true }),
      entry('pinned', 'a1', { pinned: false }),
      entry('reap_warned', '', { ...idle, action: 'evict', at: 2 }),
      entry('reaped', '', { ...idle, action: 'end' }),
    ],
    NAMES,
  )
  expect(events.map((one) => one.text)).toEqual([
    'anna started it to follow old1; 2 things did not come back: hold log',
    'anna keeps the session from being reaped',
    'anna no longer keeps it from being reaped',
    'unused: it will be put to sleep (unused for 7 days)',
    'unused, so the host had it ended (unused for 7 days)',
  ])
})

test('what a command changed in the shell is said, but not where it went', () => {
  const { events } = added(
    EMPTY,
    [
      entry('shaped', 'b1', {
        number: 3,
        keys: ['var:PATH', 'path:/home/b/bin', 'alias:ls', 'cwd', 'var:OLDPWD'],
      }),
      entry('shaped', 'a1', { number: 4, keys: ['cwd', 'job:77', 'hash:make'] }),
      entry('shaped', 'a1', {
        number: 5,
        keys: ['var:A', 'var:B', 'var:C', 'func:d', 'trap:EXIT'],
        left_out: 2,
      }),
    ],
    NAMES,
  )
  expect(events.map((one) => one.text)).toEqual([
    'bot changed PATH, alias ls',
    'anna changed A, B, C, function d and 3 more',
  ])
})

test('a halt of what one actor started is not said to be one of the session', () => {
  const part = entry('halted', 'a1', { frozen: true, scope: 'actor:b1' })
  const model = added(EMPTY, [part], NAMES)
  expect(model.events.map((one) => one.text)).toEqual(['anna halted what bot started'])
  expect(haltOf(model)).toBeNull()
  const whole = entry('halted', 'b1', { frozen: true, scope: 'session' })
  const later = entry('halted', 'a1', { frozen: true, scope: 'actor:b1' })
  expect(haltOf(added(EMPTY, [whole, later], NAMES))?.actor).toBe('bot')
})

test('a summary begins where the journal goes on', () => {
  const begun = seeded(HANDOFF)
  expect(begun.through).toBe(HANDOFF.through_seq)
  expect(begun.commands.map((one) => one.number)).toEqual(HANDOFF.commands.map((one) => one.seq))
  const old = { ...entry('command_began', 'a1', { number: 99, text: 'old' }), seq: HANDOFF.through_seq }
  expect(added(begun, [old], NAMES).commands.some((one) => one.number === 99)).toBe(false)
})

test('a long session does not make the lists long', () => {
  const many = Array.from({ length: 1500 }, (_, n) => entry('command_began', 'a1', { number: n, text: 'x' }))
  const { commands } = added(EMPTY, many, NAMES)
  expect(commands.length).toBe(1000)
  expect(commands.at(-1)?.number).toBe(1499)
})

test('turn moves are one line between commands, and none where a command says who has it', () => {
  const moved = (step: string, before: string, holder: string) =>
    entry('turn_moved', holder || before, { step, before, holder })
  const ran = (number: number, actor: string) => entry('command_began', actor, { number, text: `c${number}` })
  const model = added(
    EMPTY,
    [
      moved('request', '', 'a1'),
      ran(1, 'a1'),
      moved('yield', 'a1', ''),
      moved('request', '', 'b1'),
      moved('yield', 'b1', ''),
      moved('request', '', 'b1'),
      ran(2, 'b1'),
      entry('halted', 'a1', { frozen: true }),
      moved('seize', 'b1', 'a1'),
      entry('turn_asked', 'b1'),
    ],
    NAMES,
  )
  const said = rowsOf(model).map((row) =>
    row.kind === 'command' ? row.command.text : row.kind === 'event' ? row.event.text : row.events.length,
  )
  expect(said).toEqual([
    'bot asked for the turn',
    'anna seized the turn from bot',
    'anna halted the session',
    'c2',
    2,
    'c1',
  ])
  expect(haltOf(model)).toEqual({ actor: 'anna', at: 1000 + last - 2 })
})

test('that an actor left after its command is no line of its own', () => {
  const left = (before: string, holder: string) => entry('turn_moved', '', { step: 'leave', before, holder })
  const ran = (number: number, actor: string) => entry('command_began', actor, { number, text: `c${number}` })
  const texts = (...entries: JournalEntry[]) =>
    rowsOf(added(EMPTY, entries, NAMES)).map((row) =>
      row.kind === 'command' ? row.command.text : row.kind === 'event' ? row.event.text : row.events.length,
    )
  expect(texts(ran(1, 'a1'), left('a1', ''), ran(2, 'b1'))).toEqual(['c2', 'c1'])
  // The shell reports a command that was sent and not waited for after its sender left.
  expect(texts(left('b1', ''), ran(3, 'b1'))).toEqual(['c3'])
  expect(texts(ran(4, 'a1'), left('b1', ''))).toEqual(['bot left, the turn is free', 'c4'])
  expect(texts(ran(5, 'a1'), left('a1', 'b1'))).toEqual(["anna left, the turn is bot's", 'c5'])
})

test('what a policy held or refused is told, and a command names those behind it', () => {
  const part = { actor: 'b1', name: 'bot', kind: 'agent', part: 'state', what: 'var:PATH', command: 3 }
  const own = { ...part, actor: 'a1', name: 'anna', part: 'trigger', what: '' }
  const judged = (outcome: string, line: string) =>
    entry('judged', 'a1', { kind: 'line', text: line, outcome, reason: 'no', contributors: [own, part] })
  const model = added(
    EMPTY,
    [
      judged('refuse', 'rm -rf x'),
      entry('refused', 'a1', { what: 'input', code: 'gate_refused' }),
      judged('hold', 'make'),
      entry('approval_asked', 'a1', { id: '1', kind: 'line', text: 'make' }),
      entry('approved', 'b1', { id: '1', note: 'go on' }),
      judged('allow', 'make'),
      entry('command_began', 'a1', { number: 9, text: 'make' }),
      entry('command_began', 'a1', { number: 10, text: 'make' }),
      entry('approval_over', '', { id: '2', how: 'expired' }),
    ],
    NAMES,
  )
  expect(model.events.map((one) => one.text)).toEqual([
    'the policy refused anna: rm -rf x (no)',
    'anna waits for approval: make',
    'bot approved: “go on”',
    'nobody approved it in time: refused',
  ])
  expect(model.commands.map((one) => one.originators)).toEqual([[part], []])
})

test('without a policy a command names those whose shell state it used', () => {
  const ran = entry('command_began', 'a1', {
    number: 4,
    text: 'make',
    authors: ['a1'],
    originators: ['a1', 'b1'],
    uses: ['var:PATH@3'],
  })
  const [command] = added(EMPTY, [ran], NAMES).commands
  expect(command?.originators).toMatchObject([{ name: 'bot', part: 'state', what: 'var:PATH' }])
})
